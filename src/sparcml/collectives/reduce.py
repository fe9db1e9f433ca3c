"""Reduce to one rank, up a binomial tree.

Steps: ceil(log2(P)).
Bytes sent per rank: one message, of the sum over the ranks below it.

Ranks are counted from the root. In round t a rank whose number has bit t set sends all it
has summed to the rank without that bit, and is done; the other adds what it receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..stream import Stream
    from .base import Call


def reduce(call: Call, x: Stream, root: int) -> Stream | None:
    """Sum over all ranks, on the root; None elsewhere."""
    P = call.size
    me = (call.rank - root) % P
    for turn in range((P - 1).bit_length()):
        distance = 1 << turn
        if me & distance:
            call.send((me - distance + root) % P, x, turn)
            return None
        if me + distance < P:
            x = call.add(x, call.receive((me + distance + root) % P, turn))
    return x
