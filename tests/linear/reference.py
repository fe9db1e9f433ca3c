"""Steps of linear models, defined in NumPy without lazy updates."""

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels.reduction import Entries
from sparcml.linear.loops import Csr, Doubles, Floats, Integers


def margins(rows: Csr, weights: Floats) -> Doubles:
    """Return w.x of each row."""
    row_of_entry = np.repeat(np.arange(rows.labels.size), np.diff(rows.indptr))
    products = rows.values.astype(np.float64) * weights[rows.indices]
    return np.bincount(row_of_entry, products, rows.labels.size).astype(np.float64)


def combine_rows(rows: Csr, chosen: Integers, slopes: Doubles) -> Entries[np.float64]:
    """Return the sum of slope * x over the chosen rows, as sorted nonzero entries."""
    spans = [slice(rows.indptr[row], rows.indptr[row + 1]) for row in chosen]
    columns = [rows.indices[span] for span in spans]
    products = [s * rows.values[span] for s, span in zip(slopes, spans, strict=True)]
    empty = np.empty(0, np.uint32)
    indices, inverse = np.unique(np.concatenate([empty, *columns]), return_inverse=True)
    sums = np.bincount(inverse, np.concatenate([empty, *products]), indices.size)
    return indices[sums != 0], sums[sums != 0].astype(np.float64)


def step(
    weights: Doubles,
    velocity: Doubles,
    gradient: Doubles,
    rate: float,
    l1: float,
    l2: float,
    momentum: float,
) -> tuple[Doubles, Doubles]:
    """Return the weights and their velocity after a step."""
    velocity = momentum * velocity + gradient
    moved = (1.0 - rate * l2) * weights - rate * velocity
    return np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, 0.0), velocity


def adaptive_step(
    weights: Doubles,
    squares: Doubles,
    gradient: Doubles,
    rate: float,
    l1: float,
    l2: float,
) -> tuple[Doubles, Doubles]:
    """Return the weights and their sums of squared gradients after a step of AdaGrad."""
    squares = squares + gradient**2
    rates = rate / np.sqrt(squares)
    moved = weights - rates * gradient
    shrinkage = l1 * rates
    if l2:
        moved = moved * np.exp(-l2 * rates)
        shrinkage = l1 / l2 * -np.expm1(-l2 * rates)
    return np.sign(moved) * np.maximum(np.abs(moved) - shrinkage, 0.0), squares


def first_invalid_row(indptr: Integers, indices: NDArray[np.uint32], features: int) -> int:
    """Return the first row whose columns do not ascend or reach `features`, else the count."""
    for row in range(indptr.size - 1):
        columns = indices[indptr[row] : indptr[row + 1]].astype(np.int64)
        if (np.diff(columns) <= 0).any() or (columns >= features).any():
            return row
    return indptr.size - 1
