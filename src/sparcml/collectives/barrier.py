"""No rank goes on before all have come, by dissemination.

Steps: ceil(log2(P)).
Bytes sent per rank: a bare header of 32 bytes a step.

In round t each rank sends to the rank 2^t after it and waits for the one 2^t before it.
What travels is a header, so that ranks that are elsewhere are noticed.

Reference: Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, International
Journal of Parallel Programming 1988.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream import Stream

if TYPE_CHECKING:
    from .base import Call


def barrier(call: Call) -> None:
    """Wait for all ranks."""
    P, me = call.size, call.rank
    nothing = Stream(0, [], [])
    distance = 1
    while distance < P:
        call.send_message((me + distance) % P, call.header_only(nothing))
        source = (me - distance) % P
        call.verify(call.receive_message(source), source)
        distance *= 2
