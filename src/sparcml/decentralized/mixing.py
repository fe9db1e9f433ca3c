"""Mixing matrices: weights of a graph, checks, and how fast a matrix averages.

W[i, j] is the weight that rank i gives to the data of rank j. J is the matrix of a full
average, with 1/n everywhere.
"""

from __future__ import annotations

import math
import reprlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

TOLERANCE = 1e-9  # of sums of weights
WEIGHTS = ("uniform", "metropolis")
MAX_STEPS = 10**7  # searched for consensus


class Spectrum(NamedTuple):
    """How a mixing matrix contracts differences between ranks.

    Attributes:
        lambda_2: Second-largest eigenvalue; the second-largest modulus if some are complex.
        lambda_min: Smallest eigenvalue; the smallest real part if some are complex.
        slowest: Largest modulus of all eigenvalues but the first.
        rho: Spectral norm of W - J.
    """

    lambda_2: float
    lambda_min: float
    slowest: float
    rho: float


def uniform_weights(neighbors: Sequence[int], rank: int) -> dict[int, float]:
    """Return a row with the weight 1 / (1 + degree) for a rank and each neighbour."""
    weight = 1 / (1 + len(neighbors))
    return dict.fromkeys(sorted([rank, *neighbors]), weight)


def metropolis_weights(
    neighbors: Sequence[int], rank: int, degrees: Sequence[int]
) -> dict[int, float]:
    """Return a row with the weights 1 / (1 + max(degrees of both ends)), self the rest.

    The matrix is symmetric and doubly stochastic for every undirected graph.
    """
    row = {j: 1 / (1 + max(degrees[rank], degrees[j])) for j in neighbors}
    row[rank] = max(0.0, 1 - math.fsum(row.values()))
    return {j: row[j] for j in sorted(row)}


def graph_weights(
    function: str, neighbors: Sequence[Sequence[int]], weights: str
) -> list[dict[int, float]]:
    """Return the rows of a graph, given the neighbours of each rank.

    Raises:
        ValueError: If `weights` is not the name of a rule.
    """
    if weights not in WEIGHTS:
        raise ValueError(
            f"{function}: weights must be {' or '.join(WEIGHTS)}, got {weights!r}; "
            f"use from_matrix for others"
        )
    if weights == "uniform":
        return [uniform_weights(each, rank) for rank, each in enumerate(neighbors)]
    degrees = [len(each) for each in neighbors]
    return [metropolis_weights(each, rank, degrees) for rank, each in enumerate(neighbors)]


def check_matrix(function: str, W: Any, *, columns: bool = False) -> Matrix:
    """Return a matrix as float64; raise unless it is square and stochastic.

    Args:
        function: Name of the caller, for error messages.
        W: The matrix.
        columns: Whether the columns must add up to 1, in place of the rows.
    """
    try:
        matrix = np.array(W.toarray() if hasattr(W, "toarray") else W, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{function}: W must be a square matrix of numbers, got {reprlib.repr(W)}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{function}: W must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{function}: W must have finite entries, got NaN or infinity")
    if (matrix < 0).any():
        i, j = np.argwhere(matrix < 0)[0]
        raise ValueError(
            f"{function}: W must not have negative entries, got W[{i}, {j}] = {matrix[i, j]:g}"
        )
    sums = matrix.sum(0 if columns else 1)
    wrong = np.flatnonzero(np.abs(sums - 1) > TOLERANCE)
    if len(wrong):
        line, axis = ("column", 0) if columns else ("row", 1)
        raise ValueError(
            f"{function}: every {line} of W must add up to 1, got {sums[wrong[0]]:g} in {line} "
            f"{wrong[0]}; divide W by W.sum({axis}, keepdims=True)"
        )
    return matrix


def spectrum(W: Matrix) -> Spectrum:
    """Return the spectrum of a mixing matrix."""
    n = len(W)
    if np.array_equal(W, W.T):
        return normal_spectrum(np.linalg.eigvalsh(W))
    deviation = W - 1 / n
    found = normal_spectrum(np.linalg.eigvals(W))
    return found._replace(rho=float(np.linalg.norm(deviation, 2)))


def normal_spectrum(eigenvalues: NDArray[Any]) -> Spectrum:
    """Return the spectrum of a normal doubly stochastic matrix, given its eigenvalues."""
    first = int(np.argmin(np.abs(eigenvalues - 1)))
    others = np.delete(eigenvalues, first)
    if not len(others):
        return Spectrum(0.0, 1.0, 0.0, 0.0)
    moduli = np.abs(others)
    is_real = bool(np.abs(others.imag).max() < TOLERANCE)
    return Spectrum(
        float(others.real.max() if is_real else moduli.max()),
        float(others.real.min()),
        float(moduli.max()),
        float(moduli.max()),
    )


def disagreement(W: Matrix) -> float:
    """Return the norm of (I - J) W: the factor by which W shrinks differences at least."""
    return float(np.linalg.norm(W - W.mean(0), 2))


def steps_of_factor(factor: float, tol: float) -> float:
    """Return the smallest t with factor^t <= tol, or infinity."""
    if factor <= tol:
        return 1
    if factor >= 1 - 1e-15:
        return math.inf
    steps = math.ceil(math.log(tol) / math.log(factor) * (1 - 1e-12))
    return steps if steps <= MAX_STEPS else math.inf


def column_sums(rows: Sequence[Mapping[int, float]]) -> Matrix:
    """Return the sums of the columns of a sparse matrix."""
    sums = np.zeros(len(rows))
    for row in rows:
        for j, weight in row.items():
            sums[j] += weight
    return sums
