"""Sparse allreduce around a ring: each rank only talks to its two neighbours.

Steps: 2 (P - 1).
Bytes sent per rank: between 2 (P - 1) / P and P - 1 times those of one rank's stream, if
indices are spread evenly; never more than the dense ring.
Fan-in: 1.

As the dense ring, but the ranges are streams: they fill up on their way around, and turn
dense once that is no larger.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019; the ring
of its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload
from ...stream import join, range_offsets, split
from ..dense import ring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ...transport import Message
    from ..base import Call


def ssar_ring(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks."""
    edges = range_offsets(x.blocks, call.size)
    (reduced,) = ring.reduce_around(call, [[part] for part in split(x, edges)])
    own = (call.rank + 1) % call.size
    message, _ = call.encode(reduced, call.size - 1)
    call.send_message(own, message, call.size - 1)
    # All ranks, the owner too, decode the same bytes: parts in the same form.
    parts = {own: decode(call, message, edges, own)}
    for j, _, arrived in ring.pass_around(call, [1] * call.size):
        parts[j] = decode(call, arrived, edges, j)
    return join([parts[j] for j in range(call.size)], edges)


def decode(call: Call, message: Message, edges: Sequence[int], j: int) -> Stream:
    """Range j from the second half, as it was sent."""
    left, blocks = (call.rank - 1) % call.size, edges[j + 1] - edges[j]
    return call.decode(message, left, call.size - 1, blocks, as_held=False)


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds, round by round."""
    P = workload.ranks
    own = workload.nnz[rank] / P
    return [
        Round(turn.sends, merged=own + turn.counts()[0].expected if i < P - 1 else 0)
        for i, turn in enumerate(ring.messages(rank, workload))
    ]
