"""Random delays of ranks, added to each of a rank's computations.

A collective waits for the slowest of P ranks, so for the largest of P delays. The expected
maximum of Gaussian delays is about sqrt(2 ln P) standard deviations above the mean. That of
exponential delays is (1 + 1/2 + ... + 1/P) means, about ln P.
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
        """Draw one delay."""

    def delays(self, seed: int) -> Callable[[int], float]:
        """Return a function that draws the next delay of a rank.

        Each rank has a random sequence of its own.
        """
        generators: dict[int, np.random.Generator] = {}

        def delay(rank: int) -> float:
            if rank not in generators:
                generators[rank] = np.random.default_rng([seed, rank])
            return self.draw(generators[rank])

        return delay


@dataclass(frozen=True)
class Gaussian(Stragglers):
    """Gaussian delays; negative ones shorten a computation, at most to 0 seconds."""

    deviation: float
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < float("inf"):
            raise ValueError(
                f"Gaussian: deviation must be finite and >= 0, got {self.deviation!r}"
            )

    def draw(self, random: np.random.Generator) -> float:
        """Draw one delay, which may be negative."""
        return float(random.normal(self.mean, self.deviation))


@dataclass(frozen=True)
class ExponentialDelay(Stragglers):
    """Exponentially distributed delays: mostly short, some long."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < float("inf"):
            raise ValueError(
                f"ExponentialDelay: mean must be finite and >= 0, got {self.mean!r}"
            )

    def draw(self, random: np.random.Generator) -> float:
        """Draw one delay."""
        return float(random.exponential(self.mean))
