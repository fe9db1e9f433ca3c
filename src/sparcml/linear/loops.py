"""Steps of stochastic gradient and coordinate descent for linear models on sparse rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from ..stream import Stream
from ._core import (
    CoordinateSteps,
    GradientSteps32,
    GradientSteps64,
    flush_weights,
    row_margins,
)

Floats = NDArray[Any]  # float32 or float64, the same in all arrays of a call
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

EMPTY: Doubles = np.empty(0)

# Type checkers cannot follow tuples of arrays into arguments; the bindings check dtypes.
_coordinate_steps: Any = CoordinateSteps
_flush_weights: Any = flush_weights
_row_margins: Any = row_margins


class Csr(NamedTuple):
    """Rows of a sparse matrix, already checked with `first_invalid_row`."""

    indptr: Integers
    indices: NDArray[np.uint32]
    values: Floats
    labels: Doubles
    weights: Doubles = EMPTY  # sample weights; empty if all rows count the same


class LazyWeights(NamedTuple):
    """Weights of a model under SGD. Arrays that a solver does not need are empty.

    Regularization and momentum change every weight in every step. The kernels apply them
    to a weight only when a row needs it, or in `flush`. A weight with nothing pending is
    `numbers[0] * weights[j]`.
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


class SGDSteps:
    """Steps of SGD on one batch of rows after the other; arguments are checked once.

    A single rank calls `run`. Several ranks call `gradient` and `apply` for each step.

    Args:
        rows: Rows of this rank.
        order: Numbers of these rows.
        starts: Step i uses rows order[starts[i]] to order[starts[i + 1]].
        rates: Learning rate of each step.
        loss: Number of the loss.
        intercept: Factor of the learning rate for the intercept, 0 without one.
        model: Weights, updated.
        l1: Penalty.
        l2: Penalty.
        shares: Weight of a row in the gradient of each step: 1 / rows of all ranks. By
            default 1 / rows of this rank.
        losses: Sum of losses before these steps.
    """

    def __init__(
        self,
        rows: Csr,
        order: Integers,
        starts: Integers,
        rates: Doubles,
        loss: int,
        intercept: float,
        model: LazyWeights,
        l1: float = 0.0,
        l2: float = 0.0,
        *,
        shares: Doubles = EMPTY,
        losses: float = 0.0,
    ) -> None:
        is_single = rows.values.dtype == np.float32
        make: Any = GradientSteps32 if is_single else GradientSteps64
        self._steps = make(
            *rows, order, starts, rates, shares, loss, intercept, *model, l1, l2, losses
        )
        self._dtype = rows.values.dtype
        self._size: int = self._steps.size

    @property
    def losses(self) -> float:
        """Sum of the losses of the rows so far, each before its step."""
        return float(self._steps.losses)

    @cached_property
    def _buffers(self) -> tuple[NDArray[np.uint32], Floats]:
        """Memory for a gradient; collectives do not refer to their input once they return."""
        capacity = self._steps.capacity
        indices = buffer_pool.empty(capacity, np.uint32)
        return indices, buffer_pool.empty(capacity, self._dtype)

    def gradient(self) -> Stream:
        """Return this rank's gradient of the next batch, valid until the next call.

        The last entry is the intercept's, if there is one.
        """
        indices, values = self._buffers
        nnz = self._steps.gradient(indices, values)
        return Stream.unchecked(self._size, indices[:nnz], values[:nnz])

    def apply(self, total: Stream) -> None:
        """Make the step along the sum of all ranks' gradients."""
        self._steps.apply(total.raw_indices, total.raw_values)

    def run(self) -> float:
        """Make all steps with the gradients of this rank alone; return the losses."""
        return float(self._steps.run())


def flush(model: LazyWeights) -> None:
    """Apply everything pending to all weights; their scale is 1 afterwards."""
    _flush_weights(*model)


def margins(rows: Csr, weights: Floats) -> Doubles:
    """Return w.x of each row."""
    out = np.empty(rows.labels.size)
    _row_margins(*rows, weights, out)
    return out


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


class SCDSteps:
    """Steps of coordinate descent on the columns of this rank; arguments are checked once.

    Args:
        columns: Columns of this rank.
        objective: Labels, weights, loss, penalty and number of ranks.
        coordinates: Weight of each column, updated.
        trust_radius: Limit of the next step of each column, updated.
        margins: Margins of all rows. A single rank updates them in `run`; several ranks add
            what `changes` returns on each.
    """

    def __init__(
        self,
        columns: Csc,
        objective: SCDObjective,
        coordinates: Doubles,
        trust_radius: Doubles,
        margins: Doubles,
    ) -> None:
        rows = margins.size if objective.ranks > 1 else 0
        self._indices, self._values = np.empty(rows, np.uint32), np.empty(rows)
        arrays = coordinates, trust_radius, margins, np.zeros(rows)
        self._steps = _coordinate_steps(*columns, *objective, *arrays)

    def run(self, chosen: Integers) -> None:
        """Make one step per chosen column, in order, and update the margins."""
        self._steps.run(chosen)

    def changes(self, chosen: Integers) -> Stream:
        """Make the same steps; return the changes of the margins, valid until the next call."""
        nnz = self._steps.changes(chosen, self._indices, self._values)
        return Stream.unchecked(self._indices.size, self._indices[:nnz], self._values[:nnz])

    def step_intercept(self, bias: Doubles) -> None:
        """Update bias[0], the intercept, within its trust radius bias[1], and the margins."""
        self._steps.step_intercept(bias)
