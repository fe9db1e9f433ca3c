"""The sums equal their reference bit for bit, on every instruction set."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcml import kernels
from sparcml.kernels import reduction
from sparcml.operations import OPS
from tests.kernels.reference import reduction as reference

from .reduction_data import (
    LAST,
    as_fill,
    entries,
    odd,
    overlaps,
    same_bits,
    same_entries,
    values,
)

pytestmark = pytest.mark.usefixtures("isa")
over_ops = pytest.mark.parametrize("op", OPS)
DTYPES = [np.float32, np.float64, np.int32, np.int64]
over_dtypes = pytest.mark.parametrize("dtype", DTYPES)
over_blocks = pytest.mark.parametrize("block", [1, 2, 3, 8, 64])
many_examples = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@over_ops
@over_dtypes
def test_combine_dense_handles_every_pair_of_odd_values(op, dtype):
    a, b = (x.ravel() for x in np.meshgrid(odd(dtype), odd(dtype)))
    want = reference.combine_dense(op, a, b)
    same_bits(reduction.combine_dense(op, a, b), want)
    same_bits(reduction.combine_dense(op, a, b, out=a), want)
    assert reduction.combine_dense(op, want, b, out=want) is want


@over_ops
@over_dtypes
@over_blocks
def test_merge_equals_the_reference(op, dtype, block):
    rng = np.random.default_rng(block)
    for nnz in (0, 1, 5, 100, 3000):
        for size in (nnz + 1, 3 * nnz + 1, LAST + 1):
            a = entries(rng, nnz, size, dtype, block)
            b = entries(rng, nnz, size, dtype, block)
            got = reduction.merge(op, *a, *b, block)
            same_entries(got, reference.merge(op, *a, *b, block))


@pytest.mark.parametrize("kind", overlaps(0))
@pytest.mark.parametrize("nnz", [0, 1, 63, 129, 1000, 40_000])
def test_merge_with_every_overlap(kind, nnz):
    rng = np.random.default_rng(nnz)
    ai, bi = overlaps(nnz)[kind]
    av, bv = (values(rng, i.size, np.float32) for i in (ai, bi))
    same_entries(
        reduction.merge("sum", ai, av, bi, bv), reference.merge("sum", ai, av, bi, bv)
    )


@over_ops
@over_dtypes
def test_merge_of_many_rounds(op, dtype):
    rng = np.random.default_rng(7)
    a = entries(rng, 90_000, 200_000, dtype)
    b = entries(rng, 50_000, 150_000, dtype)
    same_entries(reduction.merge(op, *a, *b), reference.merge(op, *a, *b))


@over_ops
@over_dtypes
@over_blocks
def test_merge_many_folds_from_the_left(op, dtype, block):
    rng = np.random.default_rng(block)
    for count, nnz, size in (
        (1, 9, 20),
        (3, 50, 60),
        (8, 300, 5000),
        (5, 90, LAST + 1),
    ):
        parts = [entries(rng, nnz, size, dtype, block, 0.02) for _ in range(count)]
        parts[count // 2] = entries(rng, 0, size, dtype, block)
        got = reduction.merge_many(op, parts, block)
        same_entries(got, reference.merge_many(op, parts, block))


@over_ops
@over_dtypes
def test_merge_many_of_many_windows(op, dtype):
    rng = np.random.default_rng(3)
    parts = [entries(rng, 20_000, 400_000, dtype) for _ in range(4)]
    parts += [(np.arange(5, 70_000, dtype=np.uint32), values(rng, 69_995, dtype))]
    same_entries(reduction.merge_many(op, parts), reference.merge_many(op, parts))


@over_ops
@over_dtypes
@over_blocks
def test_scatter_and_place_equal_the_reference(op, dtype, block):
    rng = np.random.default_rng(block)
    for nnz, size in ((0, 0), (0, 3), (5, 5), (300, 1000)):
        stream = entries(rng, nnz, max(size, 1), dtype, block)
        got = values(rng, size * block, dtype)
        want = got.copy()
        reduction.scatter(op, got, *stream, block)
        reference.scatter(op, want, *stream, block)
        same_bits(got, want)
        kernels.scatter_assign(got, *stream, block)
        reference.scatter_assign(want, *stream, block)
        same_bits(got, want)


@over_dtypes
@over_blocks
@pytest.mark.parametrize("bitwise", [False, True])
@pytest.mark.parametrize("fill", [0.0, -0.0, np.inf, 1.0, np.nan])
def test_compact_equals_the_reference(dtype, block, bitwise, fill):
    rng, fill = np.random.default_rng(block), as_fill(fill, dtype)
    for blocks in (0, 1, 63, 64, 65, 500):
        for density in (0.0, 0.02, 0.5, 1.0):
            dense = np.full(blocks * block, fill, dtype)
            hit = rng.random(dense.size) < density
            dense[hit] = values(rng, int(hit.sum()), dtype)
            want = reference.compact(dense, fill, block, bitwise)
            same_entries(reduction.compact(dense, fill, block, bitwise), want)
            nnz = reference.count_nonfill(dense, fill, block, bitwise)
            assert reduction.count_nonfill(dense, fill, block, bitwise) == nnz
            if nnz:
                assert reduction.compact(dense, fill, block, bitwise, nnz - 1) is None
            same_entries(reduction.compact(dense, fill, block, bitwise, nnz), want)


def test_ascending_finds_the_first_wrong_position():
    for size in (1, 2, 9, 1024, 1025, 1026, 5000):
        fine = np.arange(size, dtype=np.uint32) * 2
        assert kernels.ascending_prefix(fine, 2 * size) == size
        assert kernels.ascending_prefix(fine, size - 1) == reference.ascending_prefix(
            fine, size - 1
        )
        for at in {1, size // 2, size - 1} - {0, size}:
            for wrong in (fine[at - 1], 0, 2**32 - 1):
                bad = fine.copy()
                bad[at] = wrong
                want = reference.ascending_prefix(bad, 2**32 - 1)
                assert kernels.ascending_prefix(bad, 2**32 - 1) == want
    last = np.array([LAST], np.uint32)
    assert kernels.ascending_prefix(last, LAST + 1) == 1
    assert kernels.ascending_prefix(last, LAST) == 0
    assert kernels.ascending_prefix(last[:0], 0) == 0


streams = st.lists(st.integers(0, 200) | st.integers(0, LAST), unique=True).map(sorted)


@many_examples
@given(
    st.sampled_from(sorted(OPS)),
    st.lists(streams, min_size=1),
    st.integers(0, 99),
)
def test_merge_many_is_repeated_merge(op, indices, seed):
    rng = np.random.default_rng(seed)
    arrays = [np.array(i, np.uint32) for i in indices]
    parts = [(i, values(rng, i.size, np.float32)) for i in arrays]
    want = reference.merge_many(op, parts)
    same_entries(reduction.merge_many(op, parts), want)
    folded = parts[0][0], parts[0][1]
    for part in parts[1:]:
        folded = reduction.merge(op, *folded, *part)
    if len(parts) > 1:
        same_entries(folded, want)


@many_examples
@given(streams, st.integers(1, 5), st.integers(0, 99))
def test_compact_finds_what_place_put(indices, block, seed):
    rng = np.random.default_rng(seed)
    i = np.array([x for x in indices if x <= 200], np.uint32)
    v = values(rng, i.size * block, np.float64)
    v[v == 0] = 1
    dense = np.zeros(201 * block)
    kernels.scatter_assign(dense, i, v, block)
    same_entries(reduction.compact(dense, block=block), (i, v))


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_momentum_equals_the_reference(nesterov, dtype):
    u, g = (x.ravel() for x in np.meshgrid(odd(dtype), odd(dtype)))
    rng = np.random.default_rng(0)
    for size in (0, 1, 7, 8, 1000):
        cases = [(u, g), (rng.standard_normal(size), rng.standard_normal(size))]
        for pair in cases:
            a, b = (x.astype(dtype) for x in pair)
            got = reduction.add_momentum(0.9, a, b, nesterov=nesterov)
            want = reference.add_momentum(0.9, a, b, nesterov=nesterov)
            for x, y in zip(got, want, strict=True):
                np.testing.assert_array_equal(x, y)


@over_dtypes
@over_blocks
def test_coalesce_equals_the_reference(dtype, block):
    """Few and many equal indices, in any order, and indices of all sizes."""
    rng = np.random.default_rng(block)
    for count in (0, 1, 2, 300):
        for size in (1, 3, 5000, 2**32):
            indices = rng.integers(0, size, count)
            rows = values(rng, count * block, dtype)
            got = reduction.coalesce(indices, rows, block)
            same_entries(got, reference.coalesce(indices, rows, block))


def test_coalesce_adds_in_the_order_of_the_rows():
    indices = np.array([7, 2, 7, 7], np.int64)
    rows = np.array([1e8, 5.0, 1.0, -1e8], np.float32)  # another order gives another sum
    found, sums = reduction.coalesce(indices, rows)
    assert found.tolist() == [2, 7]
    assert sums.tolist() == [5.0, 0.0]


@pytest.mark.parametrize("bad", [-1, 2**32])
def test_coalesce_refuses_indices_beyond_32_bits(bad):
    with pytest.raises(ValueError, match=r"indices must be in \[0, 2\*\*32\)"):
        reduction.coalesce(np.array([bad, 3], np.int64), np.ones(2, np.float32))
