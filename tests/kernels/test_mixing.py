"""Steps of decentralized methods: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml.kernels import _core, mixing
from tests.kernels.reference import mixing as reference

from .reduction_data import same_bits

pytestmark = pytest.mark.usefixtures("isa")
SIZES = [0, 1, 7, 1023, 1024, 1025, 5000]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45]


def data(size, count, dtype, *, special=False):
    rng = np.random.default_rng(size + count)
    vectors = [rng.standard_normal(size).astype(dtype) for _ in range(count)]
    if special:
        for vector in vectors:
            at = rng.integers(0, max(1, size), size // 3)
            vector[at] = rng.choice(SPECIAL, size // 3).astype(dtype)
    return vectors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("size", SIZES)
def test_bit_for_bit(size, count, dtype):
    weights = [(k + 1) / 3 for k in range(count)]
    g, base, own, x, *vectors = data(size, count + 4, dtype)
    for options in (
        {},
        {"rate": 0.1, "g": g},
        {"base": base},
        {"rate": 0.1, "g": g, "base": base},
    ):
        same_bits(
            mixing.weighted_sum(weights, vectors, **options),
            reference.weighted_sum(weights, vectors, **options),
        )
    for options in ({}, {"gamma": 0.3, "rate": 0.1, "g": g}):
        same_bits(
            mixing.add_differences(x, own, weights, vectors, **options),
            reference.add_differences(x, own, weights, vectors, **options),
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("block", [1, 4])
def test_differences_at_some_blocks_are_those_of_all(block, count, dtype):
    g, own, x, *vectors = data(3000, count + 3, dtype)
    indices = np.flatnonzero(np.arange(3000 // block) % 7 == 2).astype(np.uint32)
    where = np.add.outer(indices * block, np.arange(block)).reshape(-1)
    for options in ({}, {"gamma": 0.3, "rate": 0.1, "g": g}):
        weights, want = [1 / 3] * count, np.full(3000, 7, dtype)
        got = want.copy()
        want[where] = mixing.add_differences(x, own, weights, vectors, **options)[where]
        mixing.add_differences_at(indices, block, x, own, weights, vectors, got, **options)
        same_bits(got, want)


def test_differences_at_wrong_blocks_are_refused():
    x = np.zeros(6, np.float32)
    for indices, block, message in (
        ([0, 6], 1, "indices must ascend and be below"),
        ([3, 1], 1, "indices must ascend and be below"),
        ([0], 4, "block must be positive and divide"),
        ([0], 0, "block must be positive and divide"),
    ):
        chosen = np.array(indices, np.uint32)
        with pytest.raises(ValueError, match=f"add_differences_at: {message}"):
            mixing.add_differences_at(chosen, block, x, x, [1.0], [x], x.copy())
    with pytest.raises(ValueError, match="add_differences_at: there must be one weight"):
        mixing.add_differences_at(np.zeros(0, np.uint32), 1, x, x, [1.0], [x[:3]], x.copy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype):
    """A NaN of a sum is the canonical one."""
    vectors = data(3000, 3, dtype, special=True)
    weights = [1 / 3, 1 / 3, 1 / 3]
    got = mixing.weighted_sum(weights, vectors)
    same_bits(got, reference.weighted_sum(weights, vectors))
    same_bits(got[np.isnan(got)], np.full(np.isnan(got).sum(), np.nan, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_noticed(bad, count, dtype):
    g, base, *vectors = data(2051, count + 2, dtype)
    weights = [1 / count] * count
    assert mixing.checked_sum(weights, vectors, rate=0.1, g=g, base=base)[1]
    for vector in (g, base, vectors[-1]):
        for at in (0, 1024, 2050):
            kept, vector[at] = vector[at], bad
            assert not mixing.checked_sum(weights, vectors, rate=0.1, g=g, base=base)[1]
            vector[at] = kept


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_results_are_the_same(dtype):
    """Results above 4 MB are written past the caches."""
    size = (1 << 22) // np.dtype(dtype).itemsize + 3
    g, *vectors = data(size, 4, dtype)
    for count in (1, 3):
        got = mixing.weighted_sum([0.5] * count, vectors[:count], rate=0.1, g=g)
        want = reference.weighted_sum([0.5] * count, vectors[:count], rate=0.1, g=g)
        same_bits(got, want)
    x, own, *others = vectors
    for count in (1, 0):
        options = {"gamma": 0.3, "rate": 0.1, "g": g}
        got = mixing.add_differences(x, own, [0.5] * count, others[:count], **options)
        want = reference.add_differences(x, own, [0.5] * count, others[:count], **options)
        same_bits(got, want)


def test_result_may_replace_an_input():
    g, base, own, x, *vectors = data(5000, 6, np.float32)
    want = reference.weighted_sum([0.5, 0.5], vectors, rate=0.1, g=g, base=base)
    out = vectors[1].copy()
    _core.weighted_sum([0.5, 0.5], [vectors[0], out], 0.1, g, base, out)
    same_bits(out, want)
    want = reference.add_differences(x, own, [0.5, 0.5], vectors, gamma=0.3)
    out = vectors[0].copy()
    _core.add_differences([0.5, 0.5], [out, vectors[1]], 0.3, own, x, 0.0, None, out)
    same_bits(out, want)


def test_wrong_sizes_are_refused():
    x, y = np.zeros(3, np.float32), np.zeros(4, np.float32)
    for arguments in (
        ([1.0], [x, x], 0.0, None, None, x),
        ([1.0], [y], 0.0, None, None, x),
        ([1.0], [x], 0.0, y, None, x),
        ([1.0], [x], 0.0, None, y, x),
        ([], [], 0.0, None, None, x),
    ):
        with pytest.raises(
            ValueError, match="weighted_sum: there must be one weight per vector"
        ):
            _core.weighted_sum(*arguments)
    for others in (
        ([1.0], [y], 1.0, x, x, 0.0, None, x),
        ([1.0], [x], 1.0, y, x, 0.0, None, x),
        ([1.0], [x], 1.0, x, y, 0.0, None, x),
        ([1.0], [x], 1.0, x, x, 0.0, y, x),
    ):
        with pytest.raises(ValueError, match="add_differences: there must be one weight"):
            _core.add_differences(*others)
