"""Schedule: a sparsifier that changes with the step, such as a warm-up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from operator import index
from typing import Any

from ..sparsify import Sparsifier, TopK

# Parts of a run after which `Schedule.falling` has these ratios.
FALLING = ((0.0, 0.25), (0.05, 0.08), (0.2, 0.04), (0.5, 0.02), (0.75, 0.0))


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

    def __repr__(self) -> str:
        stages = ", ".join(f"{start}: {sparsifier}" for start, sparsifier in self.stages)
        return f"Schedule({{{stages}}})"

    def at(self, step: int) -> Sparsifier:
        """Return the sparsifier of a step."""
        return next(s for start, s in reversed(self.stages) if start <= step)

    def mean(self, steps: int) -> Sparsifier:
        """Return a sparsifier with the mean ratio of the first `steps` steps.

        Raises:
            ValueError: If a stage has no ratio.
        """
        starts = [min(start, steps) for start, _ in self.stages]
        lengths = [b - a for a, b in pairwise((*starts, steps))]
        pairs = zip(lengths, self.stages, strict=True)
        total = sum(length * _ratio(sparsifier) for length, (_, sparsifier) in pairs)
        return _with_ratio(self.stages[-1][1], total / steps)  # type: ignore[no-any-return]

    @classmethod
    def warm_up(cls, ratio: float | Sparsifier, steps: int, stages: int = 4) -> Schedule:
        """Return Deep Gradient Compression's warm-up: 1/4, 1/16, 1/64 and so on.

        Args:
            ratio: Ratio after the warm-up, and the minimum during it; or a sparsifier with a
                ratio, or with k per bucket.
            steps: Number of warm-up steps.
            stages: Number of stages of equal length.
        """
        if steps < 1 or stages < 1:
            raise ValueError(
                f"warm_up: steps and stages must be at least 1, got {steps} and {stages}"
            )
        stages = min(stages, steps)
        last = ratio if isinstance(ratio, Sparsifier) else TopK(ratio)
        target = _ratio(last)
        early = [
            (steps * i // stages, _with_ratio(last, max(target, 0.25 ** (i + 1))))
            for i in range(stages)
        ]
        return cls((*early, (steps, last)))

    @classmethod
    def falling(cls, ratio: float | Sparsifier, steps: int) -> Schedule:
        """Return ratios that fall over a full run, as learning rates do.

        What is not sent at once is late, and a delay costs more at a high learning rate: the
        run begins with 25 % of the entries, has 8 % from 5 % of the steps on, 4 % from 20 %,
        2 % from 50 %, and `ratio` in the last quarter. No stage is below `ratio`.

        Args:
            ratio: Ratio of the last quarter, or a sparsifier as for `warm_up`.
            steps: Number of steps of the run.
        """
        if steps < 1:
            raise ValueError(f"falling: steps must be at least 1, got {steps}")
        last = ratio if isinstance(ratio, Sparsifier) else TopK(ratio)
        target = _ratio(last)
        stages = {
            round(part * steps): _with_ratio(last, max(target, early))
            for part, early in FALLING
        }
        return cls(tuple(stages.items()))


def _ratio(sparsifier: Any) -> float:
    """Return the fraction of the values that a sparsifier selects."""
    ratio, k = getattr(sparsifier, "ratio", None), getattr(sparsifier, "k", None)
    bucket = getattr(sparsifier, "bucket", None)
    if ratio is not None:
        return float(ratio)
    if k is not None and bucket is not None:
        return float(k / bucket)
    raise ValueError(
        f"warm_up: the sparsifier must have a ratio, or k per bucket, got {sparsifier}; pass "
        f"a Schedule instead"
    )


def _with_ratio(sparsifier: Any, ratio: float) -> Any:
    if ratio == _ratio(sparsifier):
        return sparsifier
    without_k = {"k": None} if getattr(sparsifier, "k", None) is not None else {}
    return replace(sparsifier, ratio=ratio, **without_k)


def check_warm_up(function: str, warm_up: float, steps: int | None) -> None:
    """Raise a ValueError unless a warm-up is a number of steps or a fraction of them."""
    if warm_up < 0:
        raise ValueError(f"{function}: warm_up must be at least 0, got {warm_up}")
    if 0 < warm_up < 1 and steps is None:
        raise ValueError(
            f"{function}: steps must be the number of steps of the run if warm_up is a "
            f"fraction of it, got None with warm_up={warm_up}"
        )


def warm_up_steps(warm_up: float, steps: int | None) -> int:
    """Return the number of steps of a warm-up."""
    if warm_up >= 1 or steps is None:
        return int(warm_up)
    return max(1, round(warm_up * steps)) if warm_up else 0


@lru_cache(maxsize=64)
def warmed_up(sparsifier: Sparsifier, warm_up: float, steps: int | None) -> Schedule:
    """Return a sparsifier with a warm-up, given as a number of steps or as their fraction."""
    return Schedule.warm_up(sparsifier, warm_up_steps(warm_up, steps))


def at(sparsify: Sparsifier | Schedule | None, step: int) -> Sparsifier | None:
    """Return the sparsifier of a step."""
    return sparsify.at(step) if isinstance(sparsify, Schedule) else sparsify
