"""Ranks that are late by chance: what is added to each computation of a rank.

All who wait for the slowest of K ranks wait for the largest of K delays. Of Gaussian ones
that is about sqrt(2 ln K) standard deviations above the mean, of exponential ones
1 + 1/2 + ... + 1/K means, which is about ln K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class Stragglers(ABC):
    """A distribution of delays, in seconds."""

    @abstractmethod
    def draw(self, random: np.random.Generator) -> float:
        """One of them."""

    def delays(self, seed: int) -> Callable[[int], float]:
        """The next delay of a rank: each rank has a sequence of its own."""
        randoms: dict[int, np.random.Generator] = {}

        def delay(rank: int) -> float:
            if rank not in randoms:
                randoms[rank] = np.random.default_rng([seed, rank])
            return self.draw(randoms[rank])

        return delay


@dataclass(frozen=True)
class Gaussian(Stragglers):
    """Delays around a mean; a computation never takes less than no time."""

    deviation: float
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < float("inf"):
            raise ValueError(f"deviation must be finite and >= 0, got {self.deviation!r}")

    def draw(self, random: np.random.Generator) -> float:
        """One delay; it may be negative."""
        return float(random.normal(self.mean, self.deviation))


@dataclass(frozen=True)
class Exponential(Stragglers):
    """Mostly short delays, and some long ones."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < float("inf"):
            raise ValueError(f"mean must be finite and >= 0, got {self.mean!r}")

    def draw(self, random: np.random.Generator) -> float:
        """One delay."""
        return float(random.exponential(self.mean))
