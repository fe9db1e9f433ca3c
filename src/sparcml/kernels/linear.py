"""Steps of linear models over sparse rows: typed entrances to the compiled loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Floats = NDArray[Any]  # float32 or float64, one of both in all arrays of a call
Doubles = NDArray[np.float64]
Numbers = NDArray[np.int64]

NO_WEIGHTS: Doubles = np.empty(0)

# Type checkers cannot follow tuples of arrays into overloads; the bindings check dtypes.
_loops: Any = _core


class Csr(NamedTuple):
    """Rows of a sparse matrix; `misplaced` must have found nothing wrong with them."""

    indptr: Numbers
    indices: NDArray[np.uint32]
    values: Floats
    labels: Doubles
    weights: Doubles = NO_WEIGHTS  # none: all rows count the same


class LazyWeights(NamedTuple):
    """A model in the making; what it does not use is empty.

    The weights are `numbers[0] * weights` where nothing is due, see `reference.linear`.
    """

    weights: Floats  # if adaptive, each followed by the sum of its squared gradients
    velocity: Floats
    last: NDArray[np.uint32]
    table: Doubles
    powers: Doubles
    numbers: Doubles  # scale, clock, intercept, its velocity; see `adaptive`

    @property
    def adaptive(self) -> bool:
        """Whether coordinates have rates of their own.

        Then there are more numbers: the intercept's sum of squared gradients, what is added
        to all such sums, l1 and l2.
        """
        return self.numbers.size > 4

    @property
    def coefficients(self) -> Floats:
        """The weights alone, as they are stored."""
        return self.weights[::2] if self.adaptive else self.weights


class Gradient(NamedTuple):
    """A sparse gradient; `slope` is the intercept's, `loss` the losses of the rows."""

    indices: NDArray[np.uint32]
    values: Floats
    slope: float
    loss: float


def gradient(
    rows: Csr, chosen: Numbers, loss: int, share: float, model: LazyWeights
) -> Gradient:
    """Share * the gradient of the chosen rows' losses.

    The arrays have room for one entry more, the intercept's.
    """
    entries = int((rows.indptr[chosen + 1] - rows.indptr[chosen]).sum())
    features = model.coefficients.size
    room = min(entries, features) + 1
    indices = buffer_pool.empty(room, np.uint32)
    values = buffer_pool.empty(room, rows.values.dtype)
    nnz, slope, total = _loops.linear_gradient(
        *rows, chosen, loss, share, *model, indices, values
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
    """One step along a gradient; without indices it is dense.

    The intercept's rate is `intercept` times the others'.
    """
    if indices is None:
        indices = np.empty(0, np.uint32)
    _loops.linear_apply(*model, l1, l2, rate, intercept, indices, values)


def sgd_steps(
    rows: Csr,
    order: Numbers,
    starts: Numbers,
    rates: Doubles,
    loss: int,
    intercept: float,
    model: LazyWeights,
    l1: float,
    l2: float,
    losses: float = 0.0,
) -> float:
    """A step for each rate, over rows order[starts[i]] to order[starts[i + 1]].

    The intercept's rate is `intercept` times the others'; with 0 there is none.
    Returns `losses` and those of all these rows, each before its step.
    """
    return float(
        _loops.linear_run(
            *rows, order, starts, rates, loss, intercept, *model, l1, l2, losses
        )
    )


def flush(model: LazyWeights) -> None:
    """Write what is due to all weights; their scale is 1 then."""
    _loops.linear_settle(*model)


def margins(rows: Csr, weights: Floats) -> Doubles:
    """w.x of each row."""
    out = np.empty(rows.labels.size)
    _loops.linear_margins(*rows, weights, out)
    return out


def first_invalid_row(indptr: Numbers, indices: NDArray[np.uint32], features: int) -> int:
    """The first row with columns out of order or beyond the features; how many if none."""
    return _core.linear_misplaced(indptr, indices, features)


class Csc(NamedTuple):
    """Columns of a matrix, each with its rows in order; always of float64."""

    indptr: Numbers
    indices: NDArray[np.uint32]
    values: Doubles


class SCDObjective(NamedTuple):
    """What the steps on all coordinates have in common."""

    labels: Doubles  # of all rows
    weights: Doubles  # of all rows, or none
    loss: int
    l1: float
    l2: float
    parties: int  # that change margins at the same time


def scd_steps(
    columns: Csc,
    chosen: Numbers,
    about: SCDObjective,
    coordinates: Doubles,
    trust: Doubles,
    margins: Doubles,
    moved: Doubles | None = None,
) -> Doubles:
    """Steps on the chosen columns, one after the other; how much each has changed.

    The margins are changed too; with `moved`, that has the changes instead.
    """
    changes = np.empty(chosen.size)
    _core.linear_descend(
        *columns,
        chosen,
        about.labels,
        about.weights,
        about.loss,
        about.l1,
        about.l2,
        1.0 / max(about.labels.size, 1),
        float(about.parties),
        coordinates,
        trust,
        margins,
        np.empty(0) if moved is None else moved,
        changes,
    )
    return changes


def intercept_step(about: SCDObjective, margins: Doubles, bias: Doubles) -> None:
    """The intercept's step: bias[0] is it, bias[1] how far it may go."""
    share = 1.0 / max(about.labels.size, 1)
    _core.linear_shift(about.labels, about.weights, about.loss, share, margins, bias)


def combine_columns(
    columns: Csc, chosen: Numbers, slopes: Doubles, size: int
) -> tuple[NDArray[np.uint32], Doubles]:
    """The sum of slope * column over the chosen ones, which are vectors of that size."""
    entries = int((columns.indptr[chosen + 1] - columns.indptr[chosen]).sum())
    room = min(entries, size)
    indices, values = (
        buffer_pool.empty(room, np.uint32),
        buffer_pool.empty(room, np.float64),
    )
    nnz = _core.linear_combine(*columns, chosen, slopes, size, indices, values)
    return indices[:nnz], values[:nnz]
