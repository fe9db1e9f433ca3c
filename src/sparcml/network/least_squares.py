"""Nonnegative least squares for costs, from the times of samples that combine them.

Residuals are relative to the time of each sample, because noise is proportional to it.
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
    """Fitted costs and their accuracy.

    Attributes:
        costs: Seconds per unit of each cost.
        errors: Standard error of each cost; 0 where the cost is constrained to 0.
        misfit: Root mean square of the relative differences between fit and samples.
    """

    costs: tuple[float, ...]
    errors: tuple[float, ...]
    misfit: float


def least_squares(
    counts: Sequence[Sequence[float]], seconds: Sequence[float], trust: float = 0.0
) -> Fit:
    """Return nonnegative costs such that counts @ costs approximates `seconds`.

    Args:
        counts: Units of each cost per sample.
        seconds: Time of each sample, greater than 0.
        trust: Weight of a prior that pulls each cost towards 1, which decides where the
            samples do not determine it.
    """
    time = np.asarray(seconds, np.float64)
    if not (np.isfinite(time).all() and (time > 0).all()):
        raise ValueError("least_squares: seconds must be finite and > 0")
    rows = np.asarray(counts, np.float64) / time[:, None]
    samples = len(rows)
    targets = np.ones(samples)
    if trust:
        rows = np.vstack([rows, trust * np.eye(rows.shape[1])])
        targets = np.append(targets, np.full(rows.shape[1], trust))
    # Columns of very different magnitude would lose digits.
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    rows = rows / scale
    costs, free = _nonnegative(rows, targets)
    residuals = (rows @ costs - targets)[:samples]
    errors = _standard_errors(rows, free, residuals)
    return Fit(
        tuple((costs / scale).tolist()),
        tuple((errors / scale).tolist()),
        float(np.sqrt(np.mean(residuals**2))),
    )


def _nonnegative(
    rows: NDArray[np.float64], targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[int]]:
    """Return the costs and the columns that are not constrained to 0."""
    free = list(range(rows.shape[1]))
    while True:
        costs = np.zeros(rows.shape[1])
        costs[free] = np.linalg.lstsq(rows[:, free], targets, rcond=None)[0]
        lowest = int(costs.argmin())
        if costs[lowest] >= 0:
            return costs, free
        free.remove(lowest)


def _standard_errors(
    rows: NDArray[np.float64], free: list[int], residuals: NDArray[np.float64]
) -> NDArray[np.float64]:
    errors = np.zeros(rows.shape[1])
    degrees = max(1, len(residuals) - len(free))
    inverse = np.linalg.pinv(rows[:, free].T @ rows[:, free])
    errors[free] = np.sqrt(inverse.diagonal() * (residuals @ residuals) / degrees)
    return errors
