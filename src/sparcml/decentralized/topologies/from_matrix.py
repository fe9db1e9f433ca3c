"""Topology of given mixing matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..mixing import check_matrix
from .tables import TableTopology, digest, table_topology

if TYPE_CHECKING:
    from .tables import Row

STOCHASTIC = ("rows", "columns")


def from_matrix(W: Any, *, stochastic: str = "rows") -> TableTopology:
    """Return the topology of a mixing matrix, or of a sequence of them that repeats.

    Args:
        W: Array of shape (n, n), or a list or array of several: step s uses number s modulo
            their count. W[i, j] >= 0 is the weight that rank i gives to the data of rank j.
        stochastic: "rows" requires that the weights of each rank add up to 1. "columns"
            requires it of each column in place of that: mixing then preserves the sum over
            the ranks, as push-sum needs on directed graphs.

    Raises:
        ValueError: If a matrix is not square, has negative entries or is not stochastic, or
            if the graph is not connected.
    """
    if stochastic not in STOCHASTIC:
        raise ValueError(
            f"from_matrix: stochastic must be {' or '.join(STOCHASTIC)}, got {stochastic!r}"
        )
    matrices = [
        check_matrix("from_matrix", each, columns=stochastic == "columns")
        for each in (W if _is_sequence(W) else [W])
    ]
    sizes = sorted({len(each) for each in matrices})
    if len(sizes) > 1:
        raise ValueError(f"from_matrix: all matrices must have one size, got {sizes}")
    steps = [_rows(each) for each in matrices]
    period = f", {len(steps)} steps" if len(steps) > 1 else ""
    name = f"from_matrix({sizes[0]} ranks{period}, {digest(steps)})"
    return table_topology("from_matrix", name, steps)


def _is_sequence(W: Any) -> bool:
    if isinstance(W, (list, tuple)):
        return len(W) > 0 and np.ndim(W[0]) == 2
    return np.ndim(W) == 3


def _rows(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> list[Row]:
    rows = []
    for row in matrix:
        nonzero = np.flatnonzero(row).tolist()
        rows.append(dict(zip(nonzero, row[nonzero].tolist(), strict=True)))
    return rows
