"""Learning rate schedules, and default learning rates from the row norms.

A schedule depends on the number of epochs so far, which is fractional and does not depend on the
batch size: 2.5 is the middle of the third epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...validation import check_real
from .objective import loss_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .objective import Penalty

    Doubles = NDArray[np.float64]

CHUNK_ENTRIES = 1 << 20  # bounds the memory for squares


class LearningRate(ABC):
    """A schedule; subclasses are frozen dataclasses."""

    @abstractmethod
    def at(self, epochs: Doubles) -> Doubles:
        """Return the learning rates of steps that start after these numbers of epochs."""


@dataclass(frozen=True)
class Constant(LearningRate):
    """The same learning rate for all steps."""

    learning_rate: float

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate")

    def at(self, epochs: Doubles) -> Doubles:
        """See `LearningRate.at`."""
        return np.full(epochs.shape, self.learning_rate)


@dataclass(frozen=True)
class InverseDecay(LearningRate):
    """learning_rate / (1 + decay * epochs)^power."""

    learning_rate: float
    decay: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate", "decay", "power")

    def at(self, epochs: Doubles) -> Doubles:
        """See `LearningRate.at`."""
        return self.learning_rate * (1.0 + self.decay * epochs) ** -self.power


@dataclass(frozen=True)
class ExponentialDecay(LearningRate):
    """learning_rate * factor^epochs."""

    learning_rate: float
    factor: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate", "factor")

    def at(self, epochs: Doubles) -> Doubles:
        """See `LearningRate.at`."""
        return self.learning_rate * self.factor**epochs


@dataclass(frozen=True)
class WarmUp(LearningRate):
    """Another schedule with a linear warm-up, for large batches.

    Args:
        then: The schedule.
        epochs: Length of the warm-up.
    """

    then: LearningRate
    epochs: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "epochs")

    def at(self, epochs: Doubles) -> Doubles:
        """See `LearningRate.at`. The first learning rate is small but not zero."""
        factor = np.minimum(1.0, (epochs + 0.01 * self.epochs) / self.epochs)
        return factor * self.then.at(epochs)


def _check_positive(schedule: LearningRate, *settings: str) -> None:
    for setting in settings:
        check_real(schedule, setting)
        if not 0 < getattr(schedule, setting) < np.inf:
            raise ValueError(
                f"{type(schedule).__name__}: {setting} must be finite and > 0, got "
                f"{getattr(schedule, setting)!r}"
            )


def default_learning_rate(loss: str, mean_squared_norm: float) -> float:
    """Return 1 / (curvature * mean squared row norm), the default of `sparcml fit`.

    It is rounded to three digits, so that it does not depend on the number of ranks.
    """
    curvature = loss_of(loss).curvature or 1.0
    if not mean_squared_norm:
        return 1.0
    return float(f"{1.0 / (curvature * mean_squared_norm):.3g}")


def default_schedule(
    comm: Communicator, rows: Rows, loss: str, penalty: Penalty, batch_size: int
) -> LearningRate:
    """Return the default schedule of the estimators. Collective.

    The first learning rate is the inverse of the curvature that the loss of a batch may have:
    the curvature by the margin times the mean squared row norm plus, since a batch may hold
    the longest row, that row's squared norm / batch_size. It decays as 1 / (l2 * steps), or
    without l2 as the inverse square root of epochs.

    Reference: Bottou: Stochastic Gradient Descent Tricks, 2012; Gower et al.: SGD: General
    Analysis and Improved Rates, 2019 (expected smoothness).
    """
    ones = np.ones(len(rows)) if rows.weights is None else rows.weights
    norms = squared_row_norms(rows) + ones  # the intercept is a 1 in each row
    total = comm.allreduce(np.array([norms.sum()]))[0]
    largest = comm.allreduce(np.array([norms.max(initial=0.0)]), op="max")[0]
    curvature = loss_of(loss).curvature or 1.0
    initial = 1.0 / (curvature * (total / rows.total + largest / batch_size))
    if penalty.l2:
        steps = max(1.0, rows.total / batch_size)
        return InverseDecay(initial, decay=initial * penalty.l2 * steps)
    return InverseDecay(initial, power=0.5)


def squared_row_norms(rows: Rows) -> Doubles:
    """Return the squared norm times the weight of this rank's rows, in float64."""
    norms = np.zeros(len(rows))
    start = 0
    while start < len(rows):
        limit = rows.indptr[start] + CHUNK_ENTRIES
        last = int(np.searchsorted(rows.indptr, limit, side="right")) - 1
        stop = min(max(last, start + 1), len(rows))
        low, high = rows.indptr[start], rows.indptr[stop]
        squares = np.square(rows.values[low:high], dtype=np.float64)
        offsets = rows.indptr[start : stop + 1] - low
        nonempty = np.diff(offsets) > 0  # reduceat gives an empty row the next one's first
        norms[start:stop][nonempty] = np.add.reduceat(squares, offsets[:-1][nonempty])
        start = stop
    return norms if rows.weights is None else norms * rows.weights
