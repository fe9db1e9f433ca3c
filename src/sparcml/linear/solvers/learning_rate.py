"""How large a step is, by the number of passes over the data made so far.

A pass is as many rows as there are, whatever the batch: 2.5 is the middle of the third epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...validation import check_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]


class LearningRate(ABC):
    """A schedule; subclasses are frozen dataclasses."""

    @abstractmethod
    def rates(self, passes: Doubles) -> Doubles:
        """The rate of steps that begin after so many passes."""


@dataclass(frozen=True)
class Constant(LearningRate):
    """Always the same rate."""

    learning_rate: float

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate")

    def rates(self, passes: Doubles) -> Doubles:
        """See `Steps`."""
        return np.full(passes.shape, self.learning_rate)


@dataclass(frozen=True)
class InverseDecay(LearningRate):
    """rate / (1 + decay * passes)^power."""

    learning_rate: float
    decay: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate", "decay", "power")

    def rates(self, passes: Doubles) -> Doubles:
        """See `Steps`."""
        return self.learning_rate * (1.0 + self.decay * passes) ** -self.power


@dataclass(frozen=True)
class ExponentialDecay(LearningRate):
    """rate * factor^passes: each pass ends with so much of the rate it began with."""

    learning_rate: float
    factor: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, "learning_rate", "factor")

    def rates(self, passes: Doubles) -> Doubles:
        """See `Steps`."""
        return self.learning_rate * self.factor**passes


@dataclass(frozen=True)
class WarmUp(LearningRate):
    """Another schedule, whose rates grow from nothing during the first passes.

    Args:
        then: The schedule.
        passes: How long rates grow; large batches at large rates need that.
    """

    then: LearningRate
    passes: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "passes")

    def rates(self, passes: Doubles) -> Doubles:
        """See `Steps`. The first rate is small, not zero."""
        share = np.minimum(1.0, (passes + 0.01 * self.passes) / self.passes)
        return share * self.then.rates(passes)


def _check_positive(owner: LearningRate, *settings: str) -> None:
    for setting in settings:
        check_real(owner, setting)
        if not 0 < getattr(owner, setting) < np.inf:
            raise ValueError(
                f"{type(owner).__name__}: {setting} must be finite and > 0, got "
                f"{getattr(owner, setting)!r}"
            )
