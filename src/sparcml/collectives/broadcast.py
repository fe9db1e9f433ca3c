"""Broadcast of one rank's stream down a binomial tree.

Rounds: ceil(log2(P)).
Bytes sent per rank: at most ceil(log2(P)) times the message, at the root.

Ranks are numbered from the root. In each round every rank that has the message sends it to
the rank at `distance`, which halves from round to round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import WireError
from . import numbers
from .base import Collective, register

if TYPE_CHECKING:
    from ..stream import Stream
    from ..transport import Message
    from .call import Call
    from .numbers import Number


def broadcast(
    call: Call, x: Stream | Number | None, container: int, containers: int, root: int
) -> tuple[Stream | Number, int]:
    """Return the root's stream or number, and the number of its container type.

    Args:
        call: The call.
        x: Stream or number of the root; ignored on other ranks.
        container: Number of the root's container type, which is sent as the round.
        containers: Number of container types.
        root: Rank whose stream is sent.
    """
    message = None
    if call.rank == root and x is not None:
        message = numbers.encode(call, x, container)
    message = broadcast_message(call, message, root)
    container = call.verify(message, root).tag.round
    if container >= containers:
        raise WireError(
            f"broadcast: rank {root} sent an unknown container type, {container}"
        )
    return numbers.decode(call, message, root, container), container


def broadcast_message(call: Call, message: Message | None, root: int) -> Message:
    """Return the root's message on every rank."""
    P = call.size
    me = (call.rank - root) % P
    rounds = max(0, P - 1).bit_length()
    for round in range(rounds):
        distance = 1 << (rounds - 1 - round)
        if message is not None and me % (2 * distance) == 0 and me + distance < P:
            call.send_message((me + distance + root) % P, message, round)
        elif message is None and me % (2 * distance) == distance:
            message = call.receive_message((me - distance + root) % P, round)
    assert message is not None
    return message


register(Collective("broadcast", 2))
