"""Static exponential graph: neighbours at distances 1, 2, 4, and so on."""

from __future__ import annotations

from ...validation import as_integer
from .shifts import Shift, ShiftTopology, shift_topology


def exponential(n: int) -> ShiftTopology:
    """Return the exponential graph: rank i receives from i + 2^k for all 2^k < n.

    With t = ceil(log2(n)) neighbours all weights are 1 / (1 + t), and the gap is
    2 / (1 + t) for even n, and larger for odd n. The graph is directed.

    Reference: Ying, Yuan, Chen, Hu, Pan, Yin: Exponential Graph is Provably Efficient for
    Decentralized Deep Training, NeurIPS 2021.
    """
    n = as_integer("exponential", "n", n, 1)
    shifts: list[Shift] = [(1 << k,) for k in range((n - 1).bit_length())]
    return shift_topology(f"exponential({n})", (n,), [shifts])
