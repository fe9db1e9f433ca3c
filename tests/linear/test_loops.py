"""Gradients of sparse rows are those of the reference, whatever the ranges they go by."""

import numpy as np
import pytest

from sparcml import kernels
from sparcml.linear import _core, loops
from sparcml.stream import Stream

from . import reference

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


def steps(rows, chosen, loss, share, model, l1=0.0):
    """Return one step with an intercept on the chosen rows."""
    starts, rates = np.array([0, chosen.size]), np.array([0.1])
    shares = np.array([share])
    return loops.SGDSteps(rows, chosen, starts, rates, loss, 1.0, model, l1, shares=shares)


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
    step = steps(rows, chosen, 3, 1.0, plain(weights, 2.0))
    found = step.gradient()
    indices, values = reference.combine_rows(rows, chosen, slopes)
    np.testing.assert_array_equal(found.indices, [*indices, features])
    np.testing.assert_array_equal(found.values, [*values, slopes.sum()])
    assert step.losses == 0.5 * np.square(slopes).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("features", "most"), [(900, 700), (3000, 7), (2**20, 30_000)])
def test_every_instruction_set_gives_the_same_bits(dtype, features, most):
    rng = np.random.default_rng(most)
    rows = rows_of(rng, 50, features, dtype, most)
    rows = rows._replace(values=rng.standard_normal(rows.values.size).astype(dtype))
    model = plain(rng.standard_normal(features).astype(dtype), 0.5)
    before, found = kernels.isa(), []
    for isa in kernels.isas():
        kernels.use_isa(isa)
        step = steps(rows, np.arange(50), 0, 0.02, model)
        found.append([*step.gradient().pairs(), step.losses])
    kernels.use_isa(before)
    for other in found[1:]:
        for mine, its in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_columns_up_to_the_largest():
    """Without an array of that many: the ranges between are skipped."""
    rng = np.random.default_rng(0)
    count, features = SIZES[-1]
    rows = rows_of(rng, count, features, np.float32)
    assert reference.first_invalid_row(rows.indptr, rows.indices, features) == count
    assert _core.first_invalid_row(rows.indptr, rows.indices, features) == count
    assert (
        _core.first_invalid_row(rows.indptr, rows.indices, int(rows.indices.max())) < count
    )


@pytest.mark.parametrize("broken", [[3, 3], [4, 2], [9, 10]])
def test_columns_out_of_order_are_found(broken):
    indptr = np.array([0, 2, 2, 4], np.int64)
    indices = np.array([0, 9, *broken], np.uint32)
    assert _core.first_invalid_row(indptr, indices, 10) == 2
    assert reference.first_invalid_row(indptr, indices, 10) == 2


def test_arguments_are_checked():
    rng = np.random.default_rng(0)
    rows = rows_of(rng, 5, 10, np.float32)
    model = plain(np.zeros(10, np.float32))
    one = np.array([1])
    with pytest.raises(ValueError, match="among those given"):
        steps(rows, np.array([5]), 3, 1.0, model)
    with pytest.raises(ValueError, match="loss must be"):
        steps(rows, one, 9, 1.0, model)
    with pytest.raises(ValueError, match="within indices"):
        _core.first_invalid_row(rows.indptr + 1, rows.indices, 10)
    with pytest.raises(ValueError, match="needs last"):
        steps(rows, one, 3, 1.0, model, l1=0.1)
    with pytest.raises(ValueError, match="starts must ascend"):
        loops.SGDSteps(rows, one, np.array([0, 2]), np.ones(1), 3, 1.0, model)


def test_steps_are_made_in_turn():
    rows = rows_of(np.random.default_rng(0), 5, 10, np.float32)
    step = steps(rows, np.array([1]), 3, 1.0, plain(np.zeros(10, np.float32)))
    values = np.zeros(2, np.float32)
    total = Stream.unchecked(11, None, np.zeros(11, np.float32))
    with pytest.raises(ValueError, match="no gradient to apply"):
        step.apply(total)
    with pytest.raises(ValueError, match="of several ranks"):
        step.run()
    step.gradient()
    with pytest.raises(ValueError, match="ascend"):
        step.apply(Stream.unchecked(11, np.array([3, 12], np.uint32), values))
    with pytest.raises(ValueError, match="one per index"):
        step.apply(Stream.unchecked(11, np.array([3], np.uint32), values))
    with pytest.raises(ValueError, match="all values"):
        step.apply(Stream.unchecked(2, None, values))
    step.apply(total)
    with pytest.raises(ValueError, match="no more steps"):
        step.gradient()
