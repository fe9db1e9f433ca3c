"""Messages equal their definition byte for byte, with the kernels of each instruction set."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcml import QSGD, Half, OneBit, Stream, wire
from tests.kernels.reference import messages as reference

from .reduction_data import as_fill, entries, guarded, intact, same_bits, values

pytestmark = pytest.mark.usefixtures("isa")
TAG = wire.Tag(call=24, sequence=5, round=2)
DTYPES = (np.float32, np.float64, np.int32, np.int64)
FILLS = (0.0, -0.0, np.inf, 1.0, np.nan)
SIZES = (0, 1, 2, 63, 64, 65, 72, 127, 128, 129, 136, 191, 192, 193, 1000)
over_dtypes = pytest.mark.parametrize("dtype", DTYPES)


def dense(rng, blocks, density, dtype, fill=0.0, block=1):
    """A vector that is held dense, with absent entries."""
    rows = np.full((blocks, block), fill, dtype)
    hit = rng.random(blocks) < density
    rows[hit] = values(rng, int(hit.sum()) * block, dtype).reshape(-1, block)
    return Stream.unchecked(blocks * block, None, rows.reshape(-1), block, fill)


def check(x, quantizer=None):
    """Encode, compare, and decode to a vector and into guarded memory."""
    message, _ = wire.encode(x, TAG, quantizer, seed=3)
    assert message.tobytes() == reference.encode(x, TAG, quantizer, seed=3)
    back = wire.decode(message, x.fill, blocks=x.blocks)
    if quantizer is None:
        same_bits(back.to_dense(), x.to_dense())
    out = Stream.unchecked(x.size, None, guarded(x.size, x.dtype), x.block, x.fill)
    wire.decode_into(out, 0, message, wire.Header.read(message), x.blocks)
    same_bits(out.raw_values, back.to_dense())
    assert intact(out.raw_values)


@over_dtypes
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("size", SIZES)
def test_vectors_that_are_held_dense(dtype, fill, size):
    rng = np.random.default_rng(size)
    for density in (0.0, 0.02, 0.3, 0.5, 0.9, 1.0):
        check(dense(rng, size, density, dtype, as_fill(fill, dtype)))


@pytest.mark.parametrize("density", [0.4, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("empty", [1, 31, 32, 63, 64, 65, 100, 128, 200])
def test_vectors_whose_last_words_are_empty(empty, density):
    """There the code of gaps is as short as the bitmap, or shorter."""
    rng = np.random.default_rng(empty)
    for size in range(600, 730, 7):
        x = dense(rng, size, density, np.float32)
        x.raw_values[size - empty :] = 0
        check(x)


@over_dtypes
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("nnz", [0, 1, 2, 9, 60, 300])
def test_pairs(dtype, block, nnz):
    rng = np.random.default_rng(nnz)
    for size in (max(nnz, 1), 2 * nnz + 1, 9 * nnz + 3, 5000):
        pairs = entries(rng, nnz, size, dtype, block)
        check(Stream.unchecked(size * block, *pairs, block))
        check(dense(rng, size, nnz / size, dtype, block=block))


@pytest.mark.parametrize("quantizer", [Half(), QSGD(4, 16), OneBit(8)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_codes_of_quantizers(dtype, quantizer):
    rng = np.random.default_rng(7)
    for density in (0.0, 0.01, 0.3, 0.5, 1.0):
        x = dense(rng, 700, density, dtype)
        small = np.nan_to_num(x.raw_values, nan=2, posinf=3, neginf=-3).clip(-9, 9)
        held = Stream.unchecked(x.size, None, small)
        check(held, quantizer)
        indices = np.flatnonzero(small).astype(np.uint32)
        check(Stream.unchecked(x.size, indices, small[indices]), quantizer)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.booleans() | st.sampled_from([True] * 9 + [False]), max_size=400),
    st.sampled_from(DTYPES[:2]),
    st.sampled_from([0.0, -0.0, 1.0, -np.inf]),
    st.integers(0, 99),
)
def test_any_vector(present, dtype, fill, seed):
    where = np.array(present, bool)
    vector = np.full(where.size, fill, dtype)
    vector[where] = values(np.random.default_rng(seed), int(where.sum()), dtype)
    check(Stream.unchecked(where.size, None, vector, 1, fill))
    indices = np.flatnonzero(where).astype(np.uint32)
    check(Stream.unchecked(where.size, indices, vector[where], 1, fill))
