"""Gradients of sparse rows are those of the reference, whatever the ranges they go by."""

import numpy as np
import pytest

from sparcml.kernels import _core
from sparcml.kernels import linear as loops
from tests.kernels.reference import linear as reference

SIZES = [(1, 1), (5, 3), (40, 4096), (300, 4097), (200, 1_000_000), (3, 2**32 - 2)]


def rows_of(rng, count, features, dtype, most=60):
    """Whole numbers, so that sums are exact in any order."""
    lengths = rng.integers(0, min(most, features) + 1, count)
    columns = [np.unique(rng.integers(0, features, n)) for n in lengths]
    indptr = np.concatenate([[0], np.cumsum([c.size for c in columns])]).astype(np.int64)
    indices = np.concatenate([np.empty(0, int), *columns]).astype(np.uint32)
    values = rng.integers(-4, 5, indices.size).astype(dtype)
    return loops.Csr(indptr, indices, values, rng.integers(-3, 4, count).astype(float))


def plain(weights, intercept=0.0):
    none = np.empty(0, weights.dtype)
    last, table = np.empty(0, np.uint32), np.empty(0)
    numbers = np.array([1.0, 0.0, intercept, 0.0])
    return loops.LazyWeights(weights, none, last, table, np.empty(0), numbers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [60, 5000])  # few columns are marked, of many all are read
@pytest.mark.parametrize(("count", "features"), SIZES[:-1])
def test_gradient_of_the_squared_loss(isa, dtype, most, count, features):
    rng = np.random.default_rng(count)
    rows = rows_of(rng, count, features, dtype, most)
    weights = rng.integers(-3, 4, features).astype(dtype)
    chosen = rng.permutation(count)[: max(1, count // 2)].astype(np.int64)
    margins = reference.margins(rows, weights)
    np.testing.assert_array_equal(loops.margins(rows, weights), margins)
    slopes = margins[chosen] + 2.0 - rows.labels[chosen]
    found = loops.gradient(rows, chosen, 3, 1.0, plain(weights, 2.0))
    indices, values = reference.combine_rows(rows, chosen, slopes)
    np.testing.assert_array_equal(found.indices, [*indices, features])
    np.testing.assert_array_equal(found.values, [*values, slopes.sum()])
    assert found.loss == 0.5 * np.square(slopes).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("features", "most"), [(900, 700), (3000, 7), (2**20, 30_000)])
def test_every_instruction_set_gives_the_same_bits(dtype, features, most):
    rng = np.random.default_rng(most)
    rows = rows_of(rng, 50, features, dtype, most)
    rows = rows._replace(values=rng.standard_normal(rows.values.size).astype(dtype))
    model = plain(rng.standard_normal(features).astype(dtype), 0.5)
    before, found = _core.isa(), []
    for isa in _core.isas():
        _core.use_isa(isa)
        found.append(loops.gradient(rows, np.arange(50), 0, 0.02, model))
    _core.use_isa(before)
    for other in found[1:]:
        for mine, its in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_columns_up_to_the_largest():
    """Without an array of that many: the ranges between are skipped."""
    rng = np.random.default_rng(0)
    count, features = SIZES[-1]
    rows = rows_of(rng, count, features, np.float32)
    assert reference.first_invalid_row(rows.indptr, rows.indices, features) == count
    assert loops.first_invalid_row(rows.indptr, rows.indices, features) == count
    assert (
        loops.first_invalid_row(rows.indptr, rows.indices, int(rows.indices.max())) < count
    )


@pytest.mark.parametrize("broken", [[3, 3], [4, 2], [9, 10]])
def test_columns_out_of_order_are_found(broken):
    indptr = np.array([0, 2, 2, 4], np.int64)
    indices = np.array([0, 9, *broken], np.uint32)
    assert loops.first_invalid_row(indptr, indices, 10) == 2
    assert reference.first_invalid_row(indptr, indices, 10) == 2


def test_arguments_are_checked():
    rng = np.random.default_rng(0)
    rows = rows_of(rng, 5, 10, np.float32)
    model = plain(np.zeros(10, np.float32))
    with pytest.raises(ValueError, match="among those given"):
        loops.sgd_steps(
            rows, np.array([5]), np.array([0, 1]), np.ones(1), 3, True, model, 0.0, 0.0
        )
    with pytest.raises(ValueError, match="within indices"):
        loops.first_invalid_row(rows.indptr + 1, rows.indices, 10)
    with pytest.raises(ValueError, match="needs last"):
        loops.apply_gradient(model, 0.1, 0.0, 0.1, None, np.zeros(10, np.float32))
    bad = np.array([3, 12], np.uint32)
    with pytest.raises(ValueError, match="ascend"):
        loops.apply_gradient(model, 0.0, 0.0, 0.1, bad, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="loss must be"):
        loops.gradient(rows, np.array([1]), 9, 1.0, model)
