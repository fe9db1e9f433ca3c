"""Dense allreduce by a master: all ranks send to rank 0, which adds and sends back.

Rounds: 2 (P - 1 messages each, all at rank 0).
Bytes sent per rank: N values; rank 0 sends (P - 1) N.
Fan-in: P - 1, and rank 0 receives (P - 1) N values: the bottleneck that others avoid.

The master adds in rank order and encodes the result once, so that all ranks get the same
bits.

Reference: the parameter server with one server; Li et al.: Scaling Distributed Machine
Learning with the Parameter Server, OSDI 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from .. import pipeline
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call

MASTER = 0


def master(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""
    result = call.densify(x)
    if call.rank != MASTER:
        return pipeline.delegate(call, MASTER, result, 0, 1)
    others = range(1, call.size)
    for rank in others:
        result = pipeline.add(call, rank, result, 0)
    for segment in pipeline.segments(result):
        message, _ = call.encode(segment, 1)
        for rank in others:
            call.send_message(rank, message, 1)
    return result


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    P, N = workload.ranks, workload.blocks
    if rank != MASTER:
        own = union(workload, [rank])
        return [Round(pipeline.segment_sends(MASTER, workload, own), written=N)]
    result = union(workload, range(P))
    received = tuple(union(workload, [other]) for other in range(1, P))
    adds = Round(written=(P - 1) * N, receives=received)
    by_segment = zip(
        *(pipeline.segment_sends(other, workload, result) for other in range(1, P)),
        strict=True,
    )
    return [adds, Round(tuple(send for sends in by_segment for send in sends))]


register(Algorithm("master", 9, master, cost, is_dense=True, planned=False))
