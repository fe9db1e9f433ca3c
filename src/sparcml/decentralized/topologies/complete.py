"""Complete graph: every rank mixes with all others."""

from __future__ import annotations

from ...validation import as_integer
from .shifts import ShiftTopology, shift_topology


def complete(n: int) -> ShiftTopology:
    """Return the complete graph of n ranks, all with weight 1/n: one step is a full average.

    A step costs n - 1 messages per rank; an allreduce computes the same with fewer bytes.
    """
    n = as_integer("complete", "n", n, 1)
    return shift_topology(f"complete({n})", (n,), [[(shift,) for shift in range(1, n)]])
