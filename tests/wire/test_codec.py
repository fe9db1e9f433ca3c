"""Law 3: never larger than dense; and round trips. tests/kernels/test_messages.py has the bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcml import QSGD, Half, Integer, OneBit, Sign, Stream, wire

from ..laws import sparse

TAG = wire.Tag(call=24, sequence=1)
DENSITIES = (0.0, 1e-4, 1e-3, 0.01, 0.1, 0.125, 0.3, 0.45, 0.6, 0.9, 0.99, 1.0)


def streams():
    """Any stream of up to 300 blocks: values with NaN, infinities and signed zeros."""

    @st.composite
    def make(draw):
        dtype = draw(st.sampled_from([np.float32, np.float64]))
        block = draw(st.integers(1, 4))
        present = draw(hnp.arrays(bool, st.integers(0, 300)))
        where = np.flatnonzero(present)
        values = draw(hnp.arrays(dtype, len(where) * block))
        return Stream(len(present) * block, where, values, block=block)

    return make()


@given(streams())
def test_round_trip_keeps_every_bit(x):
    message, seen = wire.encode(x, TAG)
    header, back = wire.verify(message), wire.decode(message)
    assert header.tag == TAG
    for y in (back, seen):
        bits = (y.to_dense().tobytes(), y.size, y.block, y.dtype)
        assert bits == (x.to_dense().tobytes(), x.size, x.block, x.dtype)
    assert back.is_dense == seen.is_dense


@given(streams())
def test_never_larger_than_header_and_dense(x):
    message, _ = wire.encode(x, TAG)
    assert len(message) <= 32 + x.size * x.dtype.itemsize


@pytest.mark.parametrize("density", DENSITIES)
def test_a_vector_held_dense_is_sent_without_its_zeros(density):
    rng = np.random.default_rng(6)
    x = sparse(rng, 20_000, int(density * 20_000))
    held = Stream.unchecked(x.size, None, x.to_dense())
    as_pairs, as_dense = (len(wire.encode(s, TAG)[0]) for s in (x, held))
    assert as_dense == as_pairs
    assert wire.decode(wire.encode(held, TAG)[0], blocks=x.blocks).is_dense


@pytest.mark.parametrize("coder", [Half("float16"), Half("bfloat16"), QSGD(8), QSGD(8, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coded_values_take_fewer_bytes_and_the_sender_sees_the_rounding(coder, dtype):
    x = sparse(np.random.default_rng(7), 10_000, 300, dtype)
    x = Stream(x.size, x.indices, (x.values * 0.7).astype(dtype))
    raw, _ = wire.encode(x, TAG)
    message, seen = wire.encode(x, TAG, coder)
    coded = coder.nbytes(x.nnz) + len(coder.settings)
    assert len(raw) - len(message) == x.nnz * x.dtype.itemsize - coded
    back = wire.decode(message)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back.values, seen.values)
    np.testing.assert_allclose(back.values, x.values, rtol=2**-8, atol=9 / 127)


@given(streams(), st.sampled_from([OneBit(), OneBit(3, "mean"), Sign(), Sign(8, 1.0)]))
def test_in_one_bit_exactly_what_is_stored_goes_out(x, coder):
    """A zero would come back as something else: it must not be put in, nor left out."""
    for held in (x, Stream.unchecked(x.size, None, x.to_dense(), x.block)):
        message, seen = wire.encode(held, TAG, coder)
        assert (
            len(message) <= 32 + len(coder.settings) + held.size * held.dtype.itemsize + 8
        )
        back = wire.decode(message)
        values = held.raw_values
        with np.errstate(over="ignore"):
            want = coder.decode(coder.propagating().encode(values.astype(np.float32)))
        assert (back.nnz, back.size, back.dtype) == (held.nnz, held.size, held.dtype)
        np.testing.assert_array_equal(back.raw_values, want.astype(held.dtype))
        np.testing.assert_array_equal(seen.raw_values, back.raw_values)


def test_multiples_come_back_exactly():
    x = sparse(np.random.default_rng(3), 5000, 300)
    message, seen = wire.encode(x, TAG, Integer(1.0, 8))
    np.testing.assert_array_equal(wire.decode(message).to_dense(), x.to_dense())
    np.testing.assert_array_equal(seen.to_dense(), x.to_dense())
    assert len(message) <= 32 + 8 + -(-300 * 5 // 8) + 300 * 2


@pytest.mark.parametrize("density", [0.01, 0.3, 0.7, 1.0])
def test_codes_of_any_length(density):
    """The message says how long it is, and several can lie one behind the other."""
    x = sparse(np.random.default_rng(4), 9000, int(9000 * density))
    x = Stream(x.size, x.indices, x.values * np.float32(0.3))
    plain, coded = (QSGD(levels=32, norm="l2", coder=name) for name in (None, "elias"))
    want, seen = wire.encode(x, TAG, plain, seed=8)
    message, also = wire.encode(x, TAG, coded, seed=8)
    assert len(message) <= len(want) + 8
    assert (len(message) < 0.8 * len(want)) == (density > 0.1)
    assert wire.message_length(np.append(message, want)) == len(message)
    for y in (also, wire.decode(message)):
        np.testing.assert_array_equal(y.to_dense(), seen.to_dense())


def test_declared_sizes_bound_the_real_ones():
    rng = np.random.default_rng(8)
    for nnz in (0, 1, 7, 100, 2000, 4999, 5000):
        x = sparse(rng, 5000, nnz)
        nbytes = len(wire.encode(x, TAG)[0])
        assert wire.min_nbytes(nnz, 5000, 4) <= nbytes <= wire.max_nbytes(nnz, 5000, 4)
        assert nbytes == pytest.approx(wire.expected_nbytes(nnz, 5000, 4), rel=0.15)
