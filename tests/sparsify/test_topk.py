"""TopK's bounds (Alistarh et al. 2018, Stich et al. 2018) and its exactness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import sparcml

from .vectors import gradient, norm2


def left(sparsifier, v, seed=0):
    return norm2(v - sparsifier.select(v, seed).to_dense())


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("power", [1, 3])
def test_contraction(ratio, power):
    for size in (1, 10, 1000, 20_000):
        v = gradient(size, size, np.float64) ** power
        k = sparcml.TopK(ratio).count(size)
        assert left(sparcml.TopK(ratio), v) <= (1 - k / size) * norm2(v) * (1 + 1e-12)


def test_the_bound_is_met_only_by_equal_magnitudes():
    flat = np.where(gradient(0, 1000) < 0, -3.0, 3.0)
    assert left(sparcml.TopK(k=100), flat) == 0.9 * norm2(flat)
    flat[17] = 3.5
    assert left(sparcml.TopK(k=100), flat) < 0.9 * norm2(flat)


@given(st.data())
def test_no_other_k_entries_leave_less(data):
    numbers = st.floats(-100, 100, width=32)
    v = data.draw(arrays.arrays(np.float32, st.integers(1, 12), elements=numbers))
    k = data.draw(st.integers(1, v.size))
    others = st.permutations(range(v.size)).map(lambda p: p[k:])
    rest = data.draw(others)
    assert left(sparcml.TopK(k=k), v) <= norm2(v[list(rest)]) * (1 + 1e-12)


def test_it_leaves_no_more_than_any_random_choice():
    v = gradient(3, 2000)
    ours = left(sparcml.TopK(0.05), v)
    for seed in range(50):
        assert ours <= left(sparcml.RandomK(0.05, scaled=False), v, seed)


def test_ties_go_to_the_lowest_index():
    v = np.array([1, -2, 2, 1, -2, 2, 0], np.float32)
    assert sparcml.TopK(k=3).select(v).indices.tolist() == [1, 2, 4]
    assert sparcml.TopK(k=5).select(v).indices.tolist() == [0, 1, 2, 4, 5]
    assert sparcml.TopK(k=2, bucket=4).select(v).indices.tolist() == [1, 2, 4, 5]
    assert sparcml.TopK(k=2).select(np.zeros(5)).indices.tolist() == [0, 1]


def test_how_many():
    assert sparcml.TopK(0.01).count(1000) == 10
    assert sparcml.TopK(0.01).count(150) == 2  # 1.5, half up
    assert sparcml.TopK(0.01).count(3) == 1  # at least one
    assert sparcml.TopK(0.01).count(0) == 0
    assert sparcml.TopK(k=10).count(3) == 3
    assert sparcml.TopK(0.5) == sparcml.TopK(ratio=0.5)


@pytest.mark.parametrize("k", [1, 4, 512])
def test_of_full_buckets_exactly_k_each(k):
    v = gradient(5, 512 * 20)
    stream = sparcml.TopK(k=k, bucket=512).select(v)
    assert stream.nnz == 20 * k
    assert np.bincount(stream.indices // 512, minlength=20).tolist() == [k] * 20


def test_buckets_contract_each_and_together():
    v = gradient(6, 512 * 9 + 100, np.float64) ** 3
    sparsifier = sparcml.TopK(k=4, bucket=512)
    rest = v - sparsifier.select(v).to_dense()
    for start in range(0, v.size, 512):
        part = v[start : start + 512]
        bound = 1 - 4 / part.size
        assert norm2(rest[start : start + 512]) <= bound * norm2(part)
    assert norm2(rest) <= (1 - 4 / 512) * norm2(v)
    assert sparsifier.count(v.size) == 40
    assert sparsifier.count(512 * 9 + 2) == 38  # a bucket of 2 has no 4
    assert sparsifier.select(v[: 512 * 9 + 2]).nnz == 38


def test_a_bucket_larger_than_the_vector():
    v = gradient(1, 100)
    stream = sparcml.TopK(0.1, bucket=1000).select(v)
    assert stream.nnz == sparcml.TopK(0.1, bucket=1000).count(100) == 100
    assert sparcml.TopK(k=7, bucket=1000).select(v).nnz == 7


@pytest.mark.parametrize("kind", [sparcml.TopK, sparcml.RandomK, sparcml.BlockTopK])
def test_amounts_that_make_no_sense(kind):
    for ratio in (0, -0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="ratio must be above 0 and at most 1"):
            kind(ratio)
    with pytest.raises(ValueError, match="exactly one of ratio and k"):
        kind()
    with pytest.raises(ValueError, match="exactly one of ratio and k"):
        kind(0.1, k=3)
    with pytest.raises(ValueError, match="k must be >= 1"):
        kind(k=0)
    with pytest.raises(TypeError, match="k must be an integer"):
        kind(k=1.5)


def test_buckets_that_make_no_sense():
    with pytest.raises(ValueError, match="bucket must be >= 1"):
        sparcml.TopK(k=1, bucket=0)
    with pytest.raises(ValueError, match="block must be >= 1"):
        sparcml.BlockTopK(k=1, block=0)
