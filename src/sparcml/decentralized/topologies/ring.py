"""Ring: every rank has two neighbours."""

from __future__ import annotations

from ...validation import as_integer
from .shifts import ShiftTopology, shift_topology


def ring(n: int) -> ShiftTopology:
    """Return the ring of n ranks: rank i mixes with i - 1 and i + 1, all with weight 1/3.

    The eigenvalues are (1 + 2 cos(2 pi j / n)) / 3, so that the gap is about 4 pi^2 / (3 n^2).
    Two ranks have one neighbour each and the weight 1/2.
    """
    n = as_integer("ring", "n", n, 1)
    return shift_topology(f"ring({n})", (n,), [[(-1,), (1,)]])
