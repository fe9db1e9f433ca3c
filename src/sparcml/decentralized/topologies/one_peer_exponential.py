"""One-peer exponential graph: one neighbour per step, at distances 1, 2, 4, and so on."""

from __future__ import annotations

from ...validation import as_integer
from .shifts import Shift, ShiftTopology, shift_topology


def one_peer_exponential(n: int) -> ShiftTopology:
    """Return the one-peer exponential graph: rank i receives from i + 2^(s mod t) in step s.

    Both weights are 1/2, and t = ceil(log2(n)) is the period. If n is a power of two, t steps in
    any order are a full average. For other n use `base_graph`, which is exact for all.

    Reference: Ying, Yuan, Chen, Hu, Pan, Yin: Exponential Graph is Provably Efficient for
    Decentralized Deep Training, NeurIPS 2021.
    """
    n = as_integer("one_peer_exponential", "n", n, 1)
    steps: list[list[Shift]] = [[(1 << k,)] for k in range((n - 1).bit_length())]
    return shift_topology(f"one_peer_exponential({n})", (n,), steps or [[]])
