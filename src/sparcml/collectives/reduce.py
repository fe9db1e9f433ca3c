"""Reduce to one rank up a binomial tree.

Rounds: ceil(log2(P)).
Bytes sent per rank: one message, reduced over the ranks below it in the tree.

Ranks are numbered from the root. In round t a rank whose number has bit t set sends its
partial result to the rank without that bit and is done; the other rank adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Collective, register

if TYPE_CHECKING:
    from ..stream import Stream
    from .call import Call


def reduce(call: Call, x: Stream, root: int) -> Stream | None:
    """Return the result on the root, and None on other ranks."""
    P = call.size
    me = (call.rank - root) % P
    for round in range((P - 1).bit_length()):
        distance = 1 << round
        if me & distance:
            call.send((me - distance + root) % P, x, round)
            return None
        if me + distance < P:
            x = call.add(x, call.receive((me + distance + root) % P, round))
    return x


register(Collective("reduce", 7))
