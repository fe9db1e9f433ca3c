"""Barrier by dissemination: no rank continues before all ranks have arrived.

Rounds: ceil(log2(P)).
Bytes sent per rank: one header of 32 bytes per round.

In round t each rank sends to the rank 2^t after it and waits for the rank 2^t before it.
The messages are headers, so that ranks in different calls are detected.

Reference: Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, International
Journal of Parallel Programming 1988.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream import Stream
from .base import Collective, register

if TYPE_CHECKING:
    from .call import Call


def barrier(call: Call) -> None:
    """Wait for all ranks."""
    P, me = call.size, call.rank
    empty = Stream(0, [], [])
    distance = 1
    while distance < P:
        call.send_message((me + distance) % P, call.header_only(empty))
        source = (me - distance) % P
        call.verify(call.receive_message(source), source)
        distance *= 2


register(Collective("barrier", 16))
register(Collective("consolidate", 22))  # a barrier of its own name, see `aggregate.state`
