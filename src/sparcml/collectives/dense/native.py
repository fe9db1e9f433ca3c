"""The engine's own dense allreduce: the yardstick, and the choice for dense vectors.

Steps: the engine's business; counted as 2 log2(P).
Bytes sent per rank: estimated as 2 (P - 1) / P times those of the dense vector, which is
what recursive halving and doubling sends. Nothing of it passes through our wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...costs.workload import EntryCount, Round, Workload
from ...stream import Stream, identity

if TYPE_CHECKING:
    from ..base import Call


def native(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense, in the engine's own order."""
    total = call.native(call.densify(x).raw_values)
    if np.isnan(total.sum()):  # a cheap sign that there may be some: make them canonical
        total[np.isnan(total)] = np.nan
    return Stream.unchecked(x.size, None, total, x.block, identity(call.op), scratch=True)


def cost(rank: int, workload: Workload) -> list[Round]:
    """An estimate: halving, then doubling, of values as they are."""
    P = workload.ranks
    steps = (P - 1).bit_length()
    shares = [0.5 ** (step + 1) for step in range(steps)]
    halves = []
    for step, share in enumerate(shares):
        span = int(workload.blocks * share / sum(shares) * (P - 1) / P)
        send = ((rank + (1 << step)) % P, (EntryCount(span, span, span, span),))
        halves.append(Round((send,), written=span, encoded=False))
    return [*halves, *halves[::-1]]
