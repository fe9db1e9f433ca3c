"""Dense allreduce by a single master: all send to rank 0, which adds and sends back.

Steps: 2 (P - 1 messages each, all at rank 0).
Bytes sent per rank: N values; rank 0 sends (P - 1) N.
Fan-in: P - 1, and rank 0 receives (P - 1) N values: the bottleneck that others avoid.

The master adds in the order of ranks and codes the sum once, so all get the same bits.

Reference: the parameter server with one server; Li et al.: Scaling Distributed Machine
Learning with the Parameter Server, OSDI 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from .. import pipeline

if TYPE_CHECKING:
    from ...stream import Stream
    from ..base import Call

MASTER = 0


def master(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    total = call.densify(x)
    if call.rank != MASTER:
        return pipeline.sit_out(call, MASTER, total, 0, 1)
    others = range(1, call.size)
    for rank in others:
        total = pipeline.add(call, rank, total, 0)
    for piece in pipeline.cut(total):
        message, _ = call.encode(piece, 1)
        for rank in others:
            call.send_message(rank, message, 1)
    return total


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds."""
    P, N = workload.ranks, workload.blocks
    if rank != MASTER:
        return [Round(pipeline.sends(MASTER, workload, union(workload, [rank])), written=N)]
    load = union(workload, range(P))
    each = tuple(union(workload, [other]) for other in range(1, P))
    adds = Round(written=(P - 1) * N, receives=each)
    ways = zip(
        *(pipeline.sends(other, workload, load) for other in range(1, P)), strict=True
    )
    return [adds, Round(tuple(send for piece in ways for send in piece))]
