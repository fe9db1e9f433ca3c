"""Another sparsifier in later steps, such as fewer entries after a warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import index

from ..sparsify import Sparsifier, TopK


@dataclass(frozen=True)
class Schedule:
    """Sparsifiers by the step they begin at, the first at 0.

    Example:
        >>> Schedule(((0, TopK(0.25)), (100, TopK(0.01)))).at(99)
        TopK(ratio=0.25, k=None, bucket=None)
    """

    stages: tuple[tuple[int, Sparsifier], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple((s, m) for s, m in self.stages))
        starts = [index(start) for start, _ in self.stages]
        if not starts or starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
            raise ValueError(f"Schedule: stages must begin at 0 and ascend, got {starts}")
        for _, sparsifier in self.stages:
            if not isinstance(sparsifier, Sparsifier):
                raise TypeError(f"Schedule: expected sparsifiers, got {sparsifier!r}")

    def at(self, step: int) -> Sparsifier:
        """What holds in this step."""
        return next(s for start, s in reversed(self.stages) if start <= step)

    @classmethod
    def warm_up(cls, ratio: float, steps: int, stages: int = 4) -> Schedule:
        """Deep Gradient Compression's: 1/4, 1/16, 1/64 ... but never below `ratio`.

        Each stage takes an equal part of `steps`; then `ratio` holds.
        """
        if steps < 1 or stages < 1:
            raise ValueError(
                f"warm_up: steps and stages must be 1 or more, got {steps}, {stages}"
            )
        stages = min(stages, steps)
        early = [
            (steps * i // stages, TopK(max(ratio, 0.25 ** (i + 1)))) for i in range(stages)
        ]
        return cls((*early, (steps, TopK(ratio))))


def at(sparsify: Sparsifier | Schedule | None, step: int) -> Sparsifier | None:
    """The sparsifier of a step."""
    return sparsify.at(step) if isinstance(sparsify, Schedule) else sparsify
