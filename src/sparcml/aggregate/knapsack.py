"""Knapsack: one option per layer, with the smallest total loss within a budget.

Dynamic programming over bins of the cost. The cost of an option is rounded up to bins of
budget / bins, so that a solution never exceeds the budget; it may miss one that exceeds it by less
than one bin per layer. Time: layers x options x bins.

Reference: Alimohammadi, Markov, Frantar, Alistarh: L-GreCo, MLSys 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

BINS = 10_000


def choose_options(
    costs: Matrix, losses: Matrix, budget: float, bins: int = BINS
) -> NDArray[np.intp] | None:
    """Return the option of each layer that minimizes the total loss within a cost budget.

    Equal inputs give equal results; ties go to the lowest option.

    Args:
        costs: Cost by layer and option, not negative.
        losses: Loss by layer and option.
        budget: Maximum of the total cost.
        bins: Number of bins of the budget.

    Returns:
        One option per layer; None if no choice fits the bins.
    """
    layers = len(costs)
    units = _units(costs, budget, bins)
    best = np.zeros(bins + 1)  # by the budget in bins
    chosen = np.zeros((layers, bins + 1), np.intp)
    for layer in range(layers):
        total = np.full(bins + 1, np.inf)
        for option, unit in enumerate(units[layer]):
            if unit > bins:
                continue
            candidate = best[: bins + 1 - unit] + losses[layer, option]
            better = candidate < total[unit:]
            total[unit:][better] = candidate[better]
            chosen[layer, unit:][better] = option
        best = total
    if not np.isfinite(best[bins]):
        return None
    result, left = np.zeros(layers, np.intp), bins
    for layer in reversed(range(layers)):
        result[layer] = chosen[layer, left]
        left -= int(units[layer, result[layer]])
    return result


def total_of(table: Matrix, options: NDArray[np.intp]) -> float:
    """Return the sum over layers of the entries of the options."""
    return float(table[np.arange(len(table)), options].sum())


def _units(costs: Matrix, budget: float, bins: int) -> NDArray[np.intp]:
    """Return the costs in bins, rounded up; options that do not fit get bins + 1."""
    if budget <= 0:
        return np.where(costs > 0, bins + 1, 0).astype(np.intp)
    units = np.ceil(costs * (bins / budget))
    return np.minimum(units, bins + 1).astype(np.intp)
