"""Crowded vectors are squeezed in one pass; the bytes are those of the long way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcml import QSGD, Half, Stream, kernels, wire
from sparcml.wire import indices
from sparcml.wire.encoding import _is_crowded
from sparcml.wire.header import HELD_DENSE

from .test_hostile import resealed

TAG = wire.Tag(call=24, sequence=1)
CODERS = [None, Half(), QSGD(4, 16)]


def dense(rng, size, density, dtype=np.float32, fill=0.0, empty=0):
    """Held dense; the last `empty` values are the fill."""
    values = np.full(size, fill, dtype)
    hit = rng.random(size) < density
    hit[size - empty :] = False
    values[hit] = rng.choice([1.5, -2.25, -0.0, 0.0, 3.0], int(hit.sum()))
    return Stream.unchecked(size, None, values, 1, fill)


def the_long_way(x, coder=None):
    """Pairs, then the cheapest index format; held dense all the same."""
    found = kernels.compact(x.raw_values, x.fill, x.block, bitwise=True)
    assert found is not None
    pairs = Stream.unchecked(x.size, *found, x.block, x.fill)
    message = wire.encode(pairs, TAG, coder, seed=3)[0].copy()
    message[9] |= HELD_DENSE
    return resealed(message)


def check(x, coder=None):
    message, seen = wire.encode(x, TAG, coder, seed=3)
    assert message.tobytes() == the_long_way(x, coder).tobytes()
    assert seen.is_dense
    if coder is None:
        back = wire.decode(message, x.fill)
        assert back.raw_values.tobytes() == x.raw_values.tobytes()


@pytest.mark.parametrize("coder", CODERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.3, 0.38, 0.4, 0.42, 0.5, 0.7, 0.95, 1.0])
def test_every_message_is_that_of_the_long_way(density, dtype, coder):
    rng = np.random.default_rng(4)
    for size in (*range(1, 140), 191, 192, 193, 1000, 4096, 4097, 20_000):
        check(dense(rng, size, density, dtype), coder)


@pytest.mark.parametrize("density", [0.4, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("empty", [1, 31, 32, 63, 64, 65, 100, 128, 200])
def test_vectors_whose_last_words_are_empty(empty, density):
    """There the code of gaps is as short as the plane, or shorter."""
    rng = np.random.default_rng(empty)
    for size in range(600, 730, 3):
        x = dense(rng, size, density, empty=empty)
        check(x)
        if empty >= 128:
            assert wire.Header.read(wire.encode(x, TAG)[0]).index_format == indices.GAP


@pytest.mark.parametrize("fill", [-0.0, np.inf, -np.inf, 1.0])
def test_other_fills(fill):
    rng = np.random.default_rng(5)
    for size in (1, 5, 64, 65, 500, 3000):
        for density in (0.3, 0.45, 0.8, 1.0):
            check(dense(rng, size, density, fill=fill))


@given(
    st.lists(st.sampled_from([0.0, 0.0, -0.0, 1.0, np.nan, np.inf]), max_size=200),
    st.sampled_from([0.0, -0.0, np.inf]),
    st.integers(0, 130),
)
def test_any_crowded_vector(values, fill, empty):
    array = np.array([*values, *[fill] * empty], np.float32)
    check(Stream.unchecked(array.size, None, array, 1, fill))


def test_the_short_way_is_taken():
    rng = np.random.default_rng(6)
    for density, short in ((0.3, False), (0.5, True), (0.95, True)):
        x = dense(rng, 5000, density)
        assert _is_crowded(x, kernels.count_nonfill(x.raw_values, bitwise=True)) == short
