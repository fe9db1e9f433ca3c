"""Law 5 and what else all unbiased quantizers have in common."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparcml import NUQSGD
from sparcml.quantize import Code, from_wire

from ..rosters import UNBIASED
from .vectors import VECTORS, draws

TRIALS = 3000
EPSILON = 2**-21  # what float32 loses in a few operations
coders = pytest.mark.parametrize("coder", UNBIASED, ids=str)


@coders
@pytest.mark.parametrize("name", VECTORS)
def test_the_mean_is_the_value(coder, name):
    """In many directions: whatever is off somewhere is off in one of these."""
    vector = VECTORS[name].astype(np.float64)
    rows = draws(coder, VECTORS[name], TRIALS)
    rng = np.random.default_rng(5)
    one = np.eye(vector.size)[np.argmax(np.abs(vector))]
    ways = [np.ones_like(vector), np.sign(vector), vector, one]
    ways += [1 / np.maximum(np.abs(vector), 1e-12), *rng.standard_normal((20, vector.size))]
    directions = np.array(ways)
    seen = rows @ directions.T
    sigma = seen.std(axis=0, ddof=1) / np.sqrt(TRIALS)
    rounding = EPSILON * (np.abs(directions) @ np.abs(vector))
    off = np.abs(seen.mean(axis=0) - directions @ vector)
    assert (off < 5 * sigma + rounding).all()


@coders
@pytest.mark.parametrize("share", [2**-18, 2**-20, -(2**-20)])
def test_small_chances_are_kept(coder, share):
    """Of many values that are a tiny share of a step, as many go up as should.

    About 64 of all: so few that none at all would be 8 sigma away.
    """
    size = 1 << 20
    trials = round(64 / (size * abs(share)))
    s = getattr(coder, "s", 1)
    least = 2.0**-s if isinstance(coder, NUQSGD) else 1 / s
    values = np.zeros(size, np.float32)
    bucket = min(getattr(coder, "bucket", None) or size, size)
    values[::bucket] = 1  # the norm of each bucket, but for what is tiny
    small = np.ones(size, np.bool_)
    small[::bucket] = False
    values[small] = share * least
    due = values[small].sum(dtype=np.float64)
    seen = [
        coder.decode(coder.encode(values, k))[small].sum(dtype=np.float64)
        for k in range(trials)
    ]
    sigma = np.sqrt(trials * abs(due) * least)
    assert 5 * sigma < trials * abs(due)
    assert abs(np.sum(seen) - trials * due) < 5 * sigma


@coders
@pytest.mark.parametrize("name", VECTORS)
def test_the_variance_is_at_most_omega(coder, name):
    vector = VECTORS[name].astype(np.float64)
    error = ((draws(coder, VECTORS[name], TRIALS) - vector) ** 2).sum(1)
    bound = coder.omega(vector.size) * (vector @ vector)
    sigma = error.std(ddof=1) / np.sqrt(TRIALS)
    assert error.mean() - 5 * sigma <= bound * (1 + 1e-6)


@coders
def test_it_says_that_it_is_unbiased(coder):
    assert not coder.biased


@coders
def test_seeds_decide(coder):
    vector = VECTORS["normal"]
    once, again, other = (bytes(coder.encode(vector, seed)) for seed in (3, 3, 4))
    assert once == again != other
    assert bytes(coder.encode(vector, -1)) == bytes(coder.encode(vector, 2**64 - 1))


@coders
def test_neighbouring_seeds_are_independent(coder):
    """The errors of two draws are as orthogonal as their variances let one expect.

    Of the 2016 pairs, whose tails are heavier than a Gaussian's, one is beyond 5 sigma in one
    of twenty trials even with the best of random numbers.
    """
    vector = VECTORS["normal"]
    error = draws(coder, vector, 64) - vector
    sigma = np.sqrt((error.var(0) ** 2).sum())
    together = error @ error.T / sigma
    assert np.abs(together[~np.eye(64, dtype=bool)]).max() < 6.5


@coders
def test_the_bytes_are_as_many_as_it_says(coder):
    for size in (0, 1, 2, 7, 8, 9, 15, 63, 64, 65, 99, 100, 101, 1023, 1024, 1025):
        vector = np.ones(size, np.float32)
        code = coder.encode(vector)
        assert code.nbytes == len(bytes(code)) == coder.nbytes(size)
        assert coder.decode(code).shape == (size,)


@coders
def test_shapes_and_types(coder):
    matrix = VECTORS["normal"].reshape(20, 15)
    code = coder.encode(matrix, 1)
    back = coder.decode(code)
    assert back.shape == (20, 15)
    assert back.dtype == np.float32
    flat = coder.decode(coder.encode(matrix.ravel(), 1))
    np.testing.assert_array_equal(back.ravel(), flat)
    for kind in (np.float64, np.float16):
        other = matrix.astype(kind)
        want = bytes(coder.encode(other.astype(np.float32), 1))
        assert bytes(coder.encode(other, 1)) == want
    np.testing.assert_array_equal(
        coder.decode(coder.encode(matrix.T, 1)),
        coder.decode(coder.encode(np.ascontiguousarray(matrix.T), 1)),
    )
    assert coder.decode(coder.encode(np.float32(0.5))).shape == ()
    assert coder.decode(coder.encode([])).shape == (0,)
    assert coder.decode(coder.encode([0.5, 1.0])).shape == (2,)


@coders
def test_into_memory_of_the_caller(coder):
    vector = VECTORS["normal"]
    room = np.full(coder.nbytes(300) + 7, 9, np.uint8)
    code = coder.encode(vector, 1, room[3:-4])
    assert bytes(code) == bytes(coder.encode(vector, 1))
    assert [*room[:3], *room[-4:]] == [9] * 7
    out = np.empty(300, np.float32)
    assert coder.decode(code, out) is out
    np.testing.assert_array_equal(out, coder.decode(code))
    with pytest.raises(ValueError, match="one dimension for 300 values"):
        coder.encode(vector, 1, room)
    with pytest.raises(ValueError, match="300 values, got 299"):
        coder.decode(code, out[1:])


@coders
def test_bytes_that_are_no_code(coder):
    code = coder.encode(VECTORS["normal"])
    for bad in (code.data[:-1], np.append(code.data, np.uint8(0)), code.data[:0]):
        with pytest.raises(ValueError, match="300 values must have"):
            coder.decode(Code(300, bad))
    with pytest.raises(ValueError, match="shape must"):
        coder.decode(Code(300, code.data, (7, 7)))


@coders
def test_zeros_stay_zero(coder):
    zeros = np.array([0, -0.0] * 500, np.float32)
    assert not coder.decode(coder.encode(zeros)).any()
    few = zeros.copy()
    few[700] = 1.5
    assert not np.delete(coder.decode(coder.encode(few)), 700).any()


@coders
def test_settings_tell_a_reader_all(coder):
    read = from_wire(coder.wire_format, coder.settings)
    vector = VECTORS["normal"]
    code = coder.encode(vector, 1)
    np.testing.assert_array_equal(read.decode(code), coder.decode(code))
    assert read.nbytes(300) == coder.nbytes(300)
    assert len(coder.settings) % 8 == 0  # so that codes begin at words


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@coders
@given(values=arrays(np.float32, st.integers(0, 200), elements=FLOATS), seed=st.integers(0))
def test_any_values(coder, values, seed):
    """Signs are kept, zeros stay, and nothing becomes larger than the norm allows."""
    back = coder.decode(coder.propagating().encode(values, seed))
    assert back.shape == values.shape
    assert np.isnan(back[np.isnan(values)]).all()
    if np.isfinite(values).all() and np.abs(values).max(initial=0) < 1e37:
        assert np.isfinite(back).all()
        assert (back * np.sign(values) >= 0).all()
        length = np.sqrt((values.astype(np.float64) ** 2).sum())
        assert (np.abs(back) <= max(2 * length, 2**-126) * (1 + 1e-6)).all()
