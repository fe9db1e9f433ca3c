"""The objective: mean loss of the margins w.x + b, plus an elastic net penalty on w.

SGD applies the penalty lazily. A weight whose feature is in no row of the batch is not touched;
the penalty of the skipped steps is applied when the weight is next used. This is exact up to
rounding: all weights end as if they were penalised in every step. L2 shrinks all weights by one
factor, which is stored separately. L1 then moves each weight towards zero by a distance that
depends on the steps only, so a running sum over steps and the step of a weight's last change
determine the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ...validation import check_real
from .. import loops
from .._core import first_invalid_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows

    Doubles = NDArray[np.float64]
    Function = Callable[[Doubles, Doubles], Doubles]


@dataclass(frozen=True)
class Loss:
    """A convex function of margin and label.

    Attributes:
        name: Name for users.
        code: Number of the loss in the compiled loops.
        signs: Whether labels must be -1 and 1; otherwise they are any numbers.
        curvature: Largest second derivative by the margin; None if there is none.
        value: The loss of margins and labels.
        derivative: Its derivative by the margin.
    """

    name: str
    code: int
    signs: bool
    curvature: float | None
    value: Function
    derivative: Function


def _logistic(z: Doubles, y: Doubles) -> Doubles:
    return np.logaddexp(0.0, -y * z)


def _logistic_derivative(z: Doubles, y: Doubles) -> Doubles:
    small = np.exp(-np.abs(z))  # never overflows
    return -y * np.where(y * z > 0, small, 1.0) / (1.0 + small)


def _hinge(z: Doubles, y: Doubles) -> Doubles:
    return np.maximum(0.0, 1.0 - y * z)


def _hinge_derivative(z: Doubles, y: Doubles) -> Doubles:
    return np.where(y * z < 1.0, -y, 0.0)


def _squared_hinge(z: Doubles, y: Doubles) -> Doubles:
    return np.square(_hinge(z, y))


def _squared_hinge_derivative(z: Doubles, y: Doubles) -> Doubles:
    return -2.0 * y * _hinge(z, y)


def _squared(z: Doubles, y: Doubles) -> Doubles:
    return 0.5 * np.square(z - y)


def _squared_derivative(z: Doubles, y: Doubles) -> Doubles:
    return z - y


ROSTER = (
    Loss("logistic", 0, True, 0.25, _logistic, _logistic_derivative),
    Loss("hinge", 1, True, None, _hinge, _hinge_derivative),
    Loss("squared_hinge", 2, True, 2.0, _squared_hinge, _squared_hinge_derivative),
    Loss("squared", 3, False, 1.0, _squared, _squared_derivative),
)
LOSSES = {loss.name: loss for loss in ROSTER}


def loss_of(name: str) -> Loss:
    """Return the loss of that name; ValueError if there is none."""
    if name not in LOSSES:
        raise ValueError(f"fit: loss must be one of {', '.join(LOSSES)}, got {name!r}")
    return LOSSES[name]


@dataclass(frozen=True)
class Penalty:
    """The elastic net l1 |w| + l2 / 2 |w|^2; the intercept is not penalised.

    Args:
        l1: Coefficient of the sum of magnitudes.
        l2: Coefficient of half the sum of squares.
    """

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            check_real(self, name)
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"Penalty: {name} must be finite and >= 0, got {getattr(self, name)!r}"
                )

    @classmethod
    def mixed(cls, strength: float, l1_ratio: float) -> Self:
        """Divide a strength between l1 and l2, as scikit-learn does."""
        if not 0 <= l1_ratio <= 1:
            raise ValueError(f"Penalty: l1_ratio must be in [0, 1], got {l1_ratio!r}")
        return cls(strength * l1_ratio, strength * (1 - l1_ratio))

    def value(self, weights: NDArray[Any]) -> float:
        """Return the penalty of weights."""
        magnitudes = np.abs(weights).sum(dtype=np.float64) if self.l1 else 0.0
        squares = np.vdot(weights, weights) if self.l2 else 0.0
        return float(self.l1 * magnitudes + 0.5 * self.l2 * squares)


def to_csr(rows: Rows) -> loops.Csr:
    """Return the arrays of rows as the compiled loops take them."""
    weights = loops.EMPTY if rows.weights is None else rows.weights
    return loops.Csr(rows.indptr, rows.indices, rows.values, rows.labels, weights)


def check_rows(rows: Rows, loss: Loss) -> None:
    """Raise DataError unless columns ascend and labels fit the loss."""
    row = first_invalid_row(rows.indptr, rows.indices, rows.features)
    if row < len(rows):
        raise DataError(
            f"row {rows.first + row}: columns must ascend and be below {rows.features}"
        )
    if loss.signs and (bad := np.flatnonzero(np.abs(rows.labels) != 1)).size:
        raise DataError(
            f"row {rows.first + bad[0]}: labels must be -1 or 1 for the loss {loss.name}, "
            f"got {rows.labels[bad[0]]:g}"
        )


def margins(
    rows: Rows, weights: NDArray[Any], intercept: float = 0.0
) -> NDArray[np.float64]:
    """Return w.x + b of this rank's rows, which must have passed `check_rows`."""
    weights = np.ascontiguousarray(weights, rows.values.dtype)
    if weights.size != rows.features:
        raise ValueError(
            f"margins: weights must have {rows.features} items, as the rows have features, "
            f"got {weights.size}"
        )
    return loops.margins(to_csr(rows), weights) + intercept


def mean_loss(
    comm: Communicator,
    rows: Rows,
    loss: Loss,
    weights: NDArray[Any],
    intercept: float = 0.0,
) -> float:
    """Return the mean over all ranks' rows of weight * loss. Collective."""
    losses = loss.value(margins(rows, weights, intercept), rows.labels)
    total = losses.sum() if rows.weights is None else np.vdot(rows.weights, losses)
    sums = comm.allreduce(np.array([total, len(rows)], np.float64))
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def zero_loss(comm: Communicator, rows: Rows, loss: Loss) -> float:
    """Return the mean loss of zero weights; weights of rows have a mean of 1. Collective."""
    if loss.signs:
        return float(loss.value(np.zeros(1), np.ones(1))[0])
    losses = loss.value(np.zeros(len(rows)), rows.labels)
    total = losses.sum() if rows.weights is None else np.vdot(rows.weights, losses)
    return float(comm.allreduce(np.array([total], np.float64))[0] / rows.total)


def objective(
    comm: Communicator,
    rows: Rows,
    loss: Loss,
    penalty: Penalty,
    weights: NDArray[Any],
    intercept: float = 0.0,
) -> float:
    """Return the mean loss plus the penalty, which the solvers minimise. Collective."""
    return mean_loss(comm, rows, loss, weights, intercept) + penalty.value(weights)
