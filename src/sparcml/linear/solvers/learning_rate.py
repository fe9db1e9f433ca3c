"""Learning rate schedules, and default learning rates from the row norms.

A schedule depends on the number of epochs so far, which is fractional and does not depend on the
batch size: 2.5 is the middle of the third epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...validation import check_real
from .objective import loss_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .objective import Penalty

    Doubles = NDArray[np.float64]

ADAPTIVE_MARGIN = 6.0  # of 3 to 10, which are all good on hashed text
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


class RowNorms(NamedTuple):
    """Squared norms of all ranks' rows, times their weights; the intercept is a 1 in each.

    Attributes:
        rows: Number of rows.
        total: Sum of the squared norms.
        largest: Largest of them.
        magnitudes: Sum of the magnitudes of all entries.
        nnz: Number of entries.
        mass: Weight of the rows, before it was scaled to a mean of 1.
    """

    rows: int = 0
    total: float = 0.0
    largest: float = 0.0
    magnitudes: float = 0.0
    nnz: float = 0.0
    mass: float = 0.0

    @classmethod
    def of(cls, comm: Communicator, rows: Rows, mass: float) -> RowNorms:
        """Measure the rows. Collective."""
        ones = np.ones(len(rows)) if rows.weights is None else rows.weights
        norms = squared_row_norms(rows) + ones
        magnitudes = np.linalg.norm(rows.values, 1) + len(rows)
        own = np.array([norms.sum(), magnitudes, rows.nnz])
        total, magnitudes, nnz = comm.allreduce(own).tolist()
        largest = comm.allreduce(np.array([norms.max(initial=0.0)]), op="max")[0]
        return cls(rows.total, total, float(largest), magnitudes, nnz, mass)

    def plus(self, other: RowNorms) -> RowNorms:
        """Return the norms of both sets of rows."""
        return RowNorms(
            self.rows + other.rows,
            self.total + other.total,
            max(self.largest, other.largest),
            self.magnitudes + other.magnitudes,
            self.nnz + other.nnz,
            self.mass + other.mass,
        )


def initial_rate(loss: str, norms: RowNorms, batch_size: int) -> float:
    """Return the inverse of the curvature that the loss of a batch may have."""
    curvature = loss_of(loss).curvature or 1.0
    return 1.0 / (curvature * (norms.total / norms.rows + norms.largest / batch_size))


def adaptive_rate(norms: RowNorms) -> float:
    """Return the default learning rate of AdaGrad for classification of sparse rows.

    A first step changes each weight by the learning rate, so it changes a margin by at most
    the learning rate times the magnitudes of a row.
    """
    return ADAPTIVE_MARGIN * norms.rows / norms.magnitudes


def default_schedule(
    norms: RowNorms, loss: str, penalty: Penalty, batch_size: int
) -> LearningRate:
    """Return the default schedule of the estimators.

    The first learning rate is the inverse of the curvature that the loss of a batch may have:
    the curvature by the margin times the mean squared row norm plus, since a batch may hold
    the longest row, that row's squared norm / batch_size. It decays as 1 / (l2 * steps), or
    without l2 as the inverse square root of epochs.

    Reference: Bottou: Stochastic Gradient Descent Tricks, 2012; Gower et al.: SGD: General
    Analysis and Improved Rates, 2019 (expected smoothness).
    """
    initial = initial_rate(loss, norms, batch_size)
    if penalty.l2:
        steps = max(1.0, norms.rows / batch_size)
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
