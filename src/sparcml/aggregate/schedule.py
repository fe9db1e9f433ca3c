"""Schedule: a sparsifier that changes with the step, such as a warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import index

from ..sparsify import Sparsifier, TopK


@dataclass(frozen=True)
class Schedule:
    """Sparsifiers by the step at which each begins, the first at step 0.

    Example:
        >>> Schedule(((0, TopK(0.25)), (100, TopK(0.01)))).at(99)
        TopK(ratio=0.25, k=None, bucket=None)
    """

    stages: tuple[tuple[int, Sparsifier], ...]

    def __post_init__(self) -> None:
        try:
            stages = tuple((index(start), stage) for start, stage in self.stages)
        except (TypeError, ValueError):
            raise TypeError(
                f"Schedule: stages must be pairs of a step and a sparsifier, such as "
                f"((0, TopK(0.25)), (100, TopK(0.01))), got {self.stages!r}"
            ) from None
        object.__setattr__(self, "stages", stages)
        starts = [start for start, _ in stages]
        if not starts or starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
            raise ValueError(f"Schedule: stages must begin at 0 and ascend, got {starts}")
        for _, sparsifier in self.stages:
            if not isinstance(sparsifier, Sparsifier):
                raise TypeError(f"Schedule: stages must be sparsifiers, got {sparsifier!r}")

    def at(self, step: int) -> Sparsifier:
        """Return the sparsifier of a step."""
        return next(s for start, s in reversed(self.stages) if start <= step)

    @classmethod
    def warm_up(cls, ratio: float, steps: int, stages: int = 4) -> Schedule:
        """Return Deep Gradient Compression's warm-up: 1/4, 1/16, 1/64 and so on.

        Args:
            ratio: Ratio after the warm-up, and the minimum during it.
            steps: Number of warm-up steps.
            stages: Number of stages of equal length.
        """
        if steps < 1 or stages < 1:
            raise ValueError(
                f"warm_up: steps and stages must be at least 1, got {steps} and {stages}"
            )
        stages = min(stages, steps)
        early = [
            (steps * i // stages, TopK(max(ratio, 0.25 ** (i + 1)))) for i in range(stages)
        ]
        return cls((*early, (steps, TopK(ratio))))


def at(sparsify: Sparsifier | Schedule | None, step: int) -> Sparsifier | None:
    """Return the sparsifier of a step."""
    return sparsify.at(step) if isinstance(sparsify, Schedule) else sparsify
