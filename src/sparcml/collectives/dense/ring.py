"""Dense allreduce around a ring: each rank only communicates with its two neighbours.

Rounds: 2 (P - 1).
Bytes sent per rank: 2 (P - 1) / P times the dense vector, which is optimal.
Fan-in: 1.

The vector is cut into P ranges. In each of the first P - 1 rounds every rank receives a
range from the left, adds its own values and sends the result to the right, so that range j
starts at rank j and is complete at rank j - 1. In P - 1 more rounds the complete ranges go
around the ring once more.

Reference: Patarasuk, Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of
Workstations, JPDC 2009.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload, union
from ...stream import range_offsets, split
from .. import pipeline
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def ring(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""
    P, me = call.size, call.rank
    left, right = (me - 1) % P, (me + 1) % P
    offsets = range_offsets(x.blocks, P)
    ranges = [pipeline.segments(part) for part in split(call.densify(x), offsets)]

    # Reduce-scatter. Segments are sent on as soon as they are reduced.
    reduced = ranges[me]
    for segment in reduced:
        call.send(right, segment, 0)
    for round in range(P - 1):
        target = right if round < P - 2 else None
        part = ranges[(left - round) % P]
        reduced = pipeline.add_and_forward(call, left, part, round, target)

    # Allgather. Messages are sent on as they are, so all keep the round of the first.
    writer, first = pipeline.RangeWriter(x, offsets), P - 1
    writer.send(call, right, right, reduced, first)
    for round in range(P - 1):
        target = right if round < P - 2 else None
        j = (me - round) % P
        messages = pipeline.forward(call, left, writer.segments(j), first + round, target)
        writer.decode(call, left, j, messages, first)
    return writer.result


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank: segments are sent, and dense values are written."""
    return [
        Round(
            tuple(
                send
                for peer, (count,) in round.sends
                for send in pipeline.segment_sends(peer, workload, count)
            ),
            written=workload.blocks / workload.ranks,
        )
        for round in message_rounds(rank, workload)
    ]


def message_rounds(rank: int, workload: Workload) -> list[Round]:
    """Return the messages of a rank, with one message per range.

    In the first P - 1 rounds the reduced range covers one more rank per round.
    """
    P = workload.ranks
    offsets = range_offsets(workload.blocks, P)

    @cache  # ranges have one of two lengths
    def count(first: int, ranks: int, span: int) -> EntryCount:
        return union(workload, [(first + i) % P for i in range(ranks)], span)

    rounds = []
    for round in range(2 * (P - 1)):
        j = (rank - round) % P
        span = offsets[j + 1] - offsets[j]
        part = count(j, round + 1, span) if round < P - 1 else count(0, P, span)
        rounds.append(Round((((rank + 1) % P, (part,)),)))
    return rounds


register(Algorithm("ring", 11, ring, cost, is_dense=True))
