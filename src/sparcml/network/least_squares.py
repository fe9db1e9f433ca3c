"""Least squares: what each thing costs, from how long several of them took together.

Seconds are weighed by themselves: being wrong by a tenth counts the same for short and for
long ones, as noise does. Nothing costs less than nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Fit:
    """Costs, and how far to trust them.

    Attributes:
        costs: Seconds of one of each thing.
        errors: Standard error of each cost; 0 where it was held at nothing.
        misfit: Root mean square of the relative differences between fit and samples.
    """

    costs: tuple[float, ...]
    errors: tuple[float, ...]
    misfit: float


def least_squares(
    counts: Sequence[Sequence[float]], seconds: Sequence[float], trust: float = 0.0
) -> Fit:
    """Costs with which counts @ costs is about `seconds`.

    Args:
        counts: How many of each thing a sample had.
        seconds: What it took, more than nothing.
        trust: How strongly costs are held near 1, where samples leave them open; as if
            a sample that consists of one of each weighed that much.
    """
    time = np.asarray(seconds, np.float64)
    if not (np.isfinite(time).all() and (time > 0).all()):
        raise ValueError("fit: every sample must have taken some time")
    rows = np.asarray(counts, np.float64) / time[:, None]
    samples = len(rows)
    wanted = np.ones(samples)
    if trust:
        rows = np.vstack([rows, trust * np.eye(rows.shape[1])])
        wanted = np.append(wanted, np.full(rows.shape[1], trust))
    # Columns of very different size would lose digits.
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    rows = rows / scale
    costs, free = _not_negative(rows, wanted)
    misses = (rows @ costs - wanted)[:samples]
    errors = _errors(rows, free, misses)
    return Fit(
        tuple((costs / scale).tolist()),
        tuple((errors / scale).tolist()),
        float(np.sqrt(np.mean(misses**2))),
    )


def _not_negative(
    rows: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[int]]:
    """Costs of relative samples, and which of them are free to be anything."""
    free = list(range(rows.shape[1]))
    while True:
        costs = np.zeros(rows.shape[1])
        costs[free] = np.linalg.lstsq(rows[:, free], wanted, rcond=None)[0]
        lowest = int(costs.argmin())
        if costs[lowest] >= 0:
            return costs, free
        free.remove(lowest)


def _errors(
    rows: NDArray[np.float64], free: list[int], misses: NDArray[np.float64]
) -> NDArray[np.float64]:
    errors = np.zeros(rows.shape[1])
    spare = max(1, len(misses) - len(free))
    inverse = np.linalg.pinv(rows[:, free].T @ rows[:, free])
    errors[free] = np.sqrt(inverse.diagonal() * (misses @ misses) / spare)
    return errors
