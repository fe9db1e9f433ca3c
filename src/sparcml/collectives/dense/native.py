"""The engine's own dense allreduce: the baseline, and the choice for dense vectors.

Rounds: up to the engine; estimated as 2 log2(P).
Bytes sent per rank: estimated as 2 (P - 1) / P times the dense vector, as sent by recursive
halving and doubling. Nothing passes through our wire format.
Fan-in: up to the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...costs.workload import EntryCount, Round, Workload
from ...stream import Stream, identity
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ..call import Call


def native(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks, reduced in the engine's order."""
    result = call.native(call.densify(x).raw_values)
    if np.isnan(result.sum()):  # a cheap test for NaN, which may also be inf - inf
        result[np.isnan(result)] = np.nan  # the canonical one
    return Stream.unchecked(x.size, None, result, x.block, identity(call.op), scratch=True)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return estimated rounds: halving, then doubling, without encoding."""
    P = workload.ranks
    rounds = (P - 1).bit_length()
    shares = [0.5 ** (i + 1) for i in range(rounds)]
    halving = []
    for i, share in enumerate(shares):
        span = int(workload.blocks * share / sum(shares) * (P - 1) / P)
        send = ((rank + (1 << i)) % P, (EntryCount(span, span, span, span),))
        halving.append(Round((send,), written=span, encoded=False))
    return [*halving, *halving[::-1]]


register(Algorithm("native", 6, native, cost, is_dense=True, is_native=True))
