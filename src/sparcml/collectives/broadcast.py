"""Broadcast of one rank's stream down a binomial tree.

Steps: ceil(log2(P)).
Bytes sent per rank: at most ceil(log2(P)) times the message (the root's).

Ranks are counted from the root. In each round every rank that has the message passes it
on to the rank `distance` further; the distance halves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import WireError

if TYPE_CHECKING:
    from ..stream import Stream
    from ..transport import Message
    from .base import Call


def broadcast(
    call: Call, x: Stream | None, kind: int, kinds: int, root: int
) -> tuple[Stream, int]:
    """The root's stream on every rank, and which of so many kinds of thing it is."""
    mine = None
    if call.rank == root and x is not None:
        mine, _ = call.encode(x, kind)  # the round says it
    message = broadcast_message(call, mine, root)
    kind = call.verify(message, root).tag.round
    if kind >= kinds:
        raise WireError(f"broadcast: rank {root} sent an unknown kind, {kind}")
    return call.decode(message, root, kind), kind


def broadcast_message(call: Call, message: Message | None, root: int) -> Message:
    """The root's message, on every rank."""
    P = call.size
    me = (call.rank - root) % P
    rounds = max(0, P - 1).bit_length()
    for turn in range(rounds):
        distance = 1 << (rounds - 1 - turn)
        if message is not None and me % (2 * distance) == 0 and me + distance < P:
            call.send_message((me + distance + root) % P, message, turn)
        elif message is None and me % (2 * distance) == distance:
            message = call.receive_message((me - distance + root) % P, turn)
    assert message is not None
    return message
