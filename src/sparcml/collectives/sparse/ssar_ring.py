"""Sparse allreduce around a ring: each rank only communicates with its two neighbours.

Rounds: 2 (P - 1).
Bytes sent per rank: between 2 (P - 1) / P and P - 1 times one rank's stream if indices are
spread evenly; never more than the dense ring.
Fan-in: 1.

The algorithm is that of the dense ring, but ranges are sparse streams: their density grows
on the way, and they become dense when that is no larger.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019; the ring
of its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload
from ...stream import join, range_offsets, split
from .. import pipeline
from ..base import Algorithm, register
from ..dense.ring import message_rounds

if TYPE_CHECKING:
    from ...stream import Stream
    from ...transport import Message
    from ..call import Call


def ssar_ring(call: Call, x: Stream) -> Stream:
    """Return the result on all ranks."""
    P, me = call.size, call.rank
    left, right = (me - 1) % P, (me + 1) % P
    offsets = range_offsets(x.blocks, P)
    ranges = split(x, offsets)

    # Reduce-scatter.
    reduced = ranges[me]
    call.send(right, reduced, 0)
    for round in range(P - 1):
        target = right if round < P - 2 else None
        part = [ranges[(left - round) % P]]
        (reduced,) = pipeline.add_and_forward(call, left, part, round, target)

    # Allgather. All ranks decode the same bytes, the owner too: ranges in the same form.
    first = P - 1

    def decode(message: Message, j: int) -> Stream:
        span = offsets[j + 1] - offsets[j]
        return call.decode(message, left, first, span, as_held=False)

    message, _ = call.encode(reduced, first)
    call.send_message(right, message, first)
    gathered = {right: decode(message, right)}
    for round in range(P - 1):
        target = right if round < P - 2 else None
        j = (me - round) % P
        for message in pipeline.forward(call, left, 1, first + round, target):
            gathered[j] = decode(message, j)
    return join([gathered[j] for j in range(P)], offsets)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    P = workload.ranks
    own = workload.nnz[rank] / P
    return [
        Round(round.sends, merged=own + round.counts()[0].expected if i < P - 1 else 0)
        for i, round in enumerate(message_rounds(rank, workload))
    ]


register(Algorithm("ssar_ring", 15, ssar_ring, cost))
