"""Steps of stochastic gradient and coordinate descent for linear models on sparse rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Floats = NDArray[Any]  # float32 or float64, the same in all arrays of a call
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

NO_WEIGHTS: Doubles = np.empty(0)

# Type checkers cannot follow tuples of arrays into overloads; the bindings check dtypes.
_unchecked_core: Any = _core


class Csr(NamedTuple):
    """Rows of a sparse matrix, already checked with `first_invalid_row`."""

    indptr: Integers
    indices: NDArray[np.uint32]
    values: Floats
    labels: Doubles
    weights: Doubles = NO_WEIGHTS  # sample weights; empty if all rows count the same


class LazyWeights(NamedTuple):
    """Weights of a model under SGD. Arrays that a solver does not need are empty.

    Regularization and momentum change every weight in every step. The kernels apply them
    to a weight only when a row needs it, or in `flush`. A weight with nothing pending is
    `numbers[0] * weights[j]`; `reference.linear` has the steps without laziness.
    """

    weights: Floats  # if adaptive, each is followed by its sum of squared gradients
    velocity: Floats
    last: NDArray[np.uint32]  # the step in which each weight was last updated
    table: Doubles
    powers: Doubles
    numbers: Doubles  # scale, clock, intercept, velocity of the intercept; see `adaptive`

    @property
    def adaptive(self) -> bool:
        """Whether each coordinate has its own learning rate (AdaGrad).

        `numbers` then continues with the intercept's sum of squared gradients, the constant
        added to all of these sums, l1 and l2.
        """
        return self.numbers.size > 4

    @property
    def coefficients(self) -> Floats:
        """The stored weights, without the sums of squared gradients."""
        return self.weights[::2] if self.adaptive else self.weights


class Gradient(NamedTuple):
    """A sparse gradient, with the intercept's (`slope`) and the loss summed over the rows."""

    indices: NDArray[np.uint32]
    values: Floats
    slope: float
    loss: float


def gradient(
    rows: Csr, chosen: Integers, loss: int, scale: float, model: LazyWeights
) -> Gradient:
    """Return the gradient of the loss of the chosen rows, times `scale`.

    The last entry is the intercept's.
    """
    entries = int((rows.indptr[chosen + 1] - rows.indptr[chosen]).sum())
    features = model.coefficients.size
    capacity = min(entries, features) + 1
    indices = buffer_pool.empty(capacity, np.uint32)
    values = buffer_pool.empty(capacity, rows.values.dtype)
    nnz, slope, total = _unchecked_core.linear_gradient(
        *rows, chosen, loss, scale, *model, indices, values
    )
    indices[nnz], values[nnz] = features, slope
    return Gradient(indices[: nnz + 1], values[: nnz + 1], slope, total)


def apply_gradient(
    model: LazyWeights,
    l1: float,
    l2: float,
    rate: float,
    indices: NDArray[np.uint32] | None,
    values: Floats,
    intercept: float = 1.0,
) -> None:
    """Update the model with a gradient, which is dense if `indices` is None.

    The learning rate of the intercept is `intercept * rate`.
    """
    if indices is None:
        indices = np.empty(0, np.uint32)
    _unchecked_core.linear_apply_gradient(*model, l1, l2, rate, intercept, indices, values)


def sgd_steps(
    rows: Csr,
    order: Integers,
    starts: Integers,
    rates: Doubles,
    loss: int,
    intercept: float,
    model: LazyWeights,
    l1: float,
    l2: float,
    losses: float = 0.0,
) -> float:
    """Make one step per learning rate; return `losses` plus the loss of all these rows.

    Step i uses rows order[starts[i]] to order[starts[i + 1]]. The loss of a row is taken
    before its step. The learning rate of the intercept is `intercept` times the others';
    0 means no intercept.
    """
    return float(
        _unchecked_core.linear_sgd_steps(
            *rows, order, starts, rates, loss, intercept, *model, l1, l2, losses
        )
    )


SGDSteps = _core.SGDStepsFloat32 | _core.SGDStepsFloat64


def sgd_source(
    rows: Csr,
    order: Integers,
    starts: Integers,
    rates: Doubles,
    shares: Doubles,
    loss: int,
    intercept: float,
    model: LazyWeights,
    l1: float,
    l2: float,
    losses: float,
) -> SGDSteps:
    """Return steps of one of several ranks: gradients to be added up, and their updates.

    Args:
        rows: Rows of this rank.
        order: As for `sgd_steps`, of this rank's rows.
        starts: As for `sgd_steps`.
        rates: Learning rate of each step.
        shares: Weight of a row in the gradient of each step: 1 / rows of all ranks.
        loss: Number of the loss.
        intercept: Factor of the learning rate for the intercept, 0 without one.
        model: Weights, updated.
        l1: Penalty.
        l2: Penalty.
        losses: Sum of losses before these steps.
    """
    name = f"SGDSteps{rows.values.dtype.name.capitalize()}"
    return getattr(_unchecked_core, name)(  # type: ignore[no-any-return]
        *rows, order, starts, rates, shares, loss, intercept, *model, l1, l2, losses
    )


def flush(model: LazyWeights) -> None:
    """Apply everything pending to all weights; their scale is 1 afterwards."""
    _unchecked_core.linear_flush(*model)


def margins(rows: Csr, weights: Floats) -> Doubles:
    """Return w.x of each row."""
    out = np.empty(rows.labels.size)
    _unchecked_core.linear_margins(*rows, weights, out)
    return out


def first_invalid_row(indptr: Integers, indices: NDArray[np.uint32], features: int) -> int:
    """Return the first row whose columns do not ascend or reach `features`.

    Returns the number of rows if all are valid.
    """
    return _core.linear_first_invalid_row(indptr, indices, features)


class Csc(NamedTuple):
    """Columns of a float64 matrix, each with its rows in ascending order."""

    indptr: Integers
    indices: NDArray[np.uint32]
    values: Doubles


class SCDObjective(NamedTuple):
    """The objective of coordinate descent: labels and sample weights of all rows, and terms."""

    labels: Doubles
    weights: Doubles  # empty if all rows count the same
    loss: int
    l1: float
    l2: float
    ranks: int  # ranks that change the margins at the same time


def scd_steps(
    columns: Csc,
    chosen: Integers,
    objective: SCDObjective,
    coordinates: Doubles,
    trust_radius: Doubles,
    margins: Doubles,
    margin_changes: Doubles | None = None,
) -> Doubles:
    """Make one step per chosen column, in order; return the change of each coordinate.

    Args:
        columns: Columns of this rank.
        chosen: The columns to update.
        objective: Labels, weights, loss and penalty.
        coordinates: Weight of each column, updated.
        trust_radius: Limit of the next step of each column, updated.
        margins: Margins of all rows, updated if `margin_changes` is None.
        margin_changes: Receives the changes of the margins instead.
    """
    changes = np.empty(chosen.size)
    _core.linear_scd_steps(
        *columns,
        chosen,
        objective.labels,
        objective.weights,
        objective.loss,
        objective.l1,
        objective.l2,
        1.0 / max(objective.labels.size, 1),
        float(objective.ranks),
        coordinates,
        trust_radius,
        margins,
        np.empty(0) if margin_changes is None else margin_changes,
        changes,
    )
    return changes


def intercept_step(objective: SCDObjective, margins: Doubles, bias: Doubles) -> None:
    """Update bias[0], the intercept, within its trust radius bias[1], and the margins."""
    scale = 1.0 / max(objective.labels.size, 1)
    _core.linear_intercept_step(
        objective.labels, objective.weights, objective.loss, scale, margins, bias
    )


def take_margin_changes(
    columns: Csc, chosen: Integers, changes: Doubles, margin_changes: Doubles
) -> tuple[NDArray[np.uint32], Doubles]:
    """Move the changes of the margins to sparse entries; `margin_changes` is zero afterwards.

    Args:
        columns: Columns with one row per margin.
        chosen: The columns of the last steps.
        changes: The changes of their coordinates, as returned by `scd_steps`.
        margin_changes: The changes of all margins since they were last taken.
    """
    entries = int((columns.indptr[chosen + 1] - columns.indptr[chosen]).sum())
    capacity = min(entries, margin_changes.size)
    indices = buffer_pool.empty(capacity, np.uint32)
    values = buffer_pool.empty(capacity, np.float64)
    nnz = _core.linear_take_margin_changes(
        *columns, chosen, changes, margin_changes, indices, values
    )
    return indices[:nnz], values[:nnz]


def scd_rounds(
    columns: Csc,
    chosen: Integers,
    block_size: int,
    rounds: int,
    objective: SCDObjective,
    coordinates: Doubles,
    trust_radius: Doubles,
    margins: Doubles,
    margin_changes: Doubles,
) -> _core.SCDRounds:
    """Return rounds of steps as a source for `Communicator.add_from`.

    A round is `scd_steps` on the next block of the chosen columns, then `take_margin_changes`.

    Args:
        columns: Columns of this rank.
        chosen: The columns to update in all rounds.
        block_size: Number of columns per round; the last rounds may have fewer, or none.
        rounds: Number of rounds.
        objective: Labels, weights, loss and penalty.
        coordinates: Weight of each column, updated.
        trust_radius: Limit of the next step of each column, updated.
        margins: Margins of all rows, which the caller updates between rounds.
        margin_changes: Zeros, one per row.
    """
    return _core.SCDRounds(
        *columns,
        chosen,
        block_size,
        rounds,
        objective.labels,
        objective.weights,
        objective.loss,
        objective.l1,
        objective.l2,
        1.0 / max(objective.labels.size, 1),
        float(objective.ranks),
        coordinates,
        trust_radius,
        margins,
        margin_changes,
    )
