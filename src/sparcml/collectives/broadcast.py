"""Broadcast of one rank's stream down a binomial tree.

Steps: ceil(log2(P)).
Bytes sent per rank: at most ceil(log2(P)) times the message (the root's).

Ranks are counted from the root. In each round every rank that has the message passes it
on to the rank `distance` further; the distance halves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transport import Message
    from .base import Call


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
