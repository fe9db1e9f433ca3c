"""Allgather of messages by Bruck's algorithm: any number of ranks, of unequal sizes.

Steps: ceil(log2(P)).
Bytes sent per rank: the messages of the P - 1 other ranks, in all.

Before round t a rank holds the messages of itself and the 2^t - 1 ranks after it, and
sends them to the rank 2^t before it. Messages pass through as they were coded by their
owner: each is coded once and decoded once, and all ranks decode the same bytes.

Reference: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All
Communications in Multiport Message-Passing Systems, IEEE TPDS 1997.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import buffer_pool, wire
from ..costs.workload import EntryCount, Round
from ..errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stream import Stream
    from ..transport import Message
    from .base import Call


def allgather(call: Call, x: Stream) -> list[Stream]:
    """Every rank's stream, in the order of ranks; they may differ in size."""
    mine, _ = call.encode(x, 0)
    return [
        call.decode(message, rank, 0)
        for rank, message in enumerate(allgather_messages(call, mine))
    ]


def allgather_messages(call: Call, mine: Message, turn: int = 0) -> list[Message]:
    """Every rank's message, in the order of ranks, still coded; rounds begin at `turn`."""
    P, me = call.size, call.rank
    held = [mine]  # of ranks me, me + 1, me + 2, ...
    while len(held) < P:
        distance = len(held)
        share = held[: P - distance]
        bundle = share[0] if len(share) == 1 else buffer_pool.concatenate(share)
        call.send_message((me - distance) % P, bundle, turn)
        source = (me + distance) % P
        bundle = call.receive_message(source, turn)
        turn += 1
        with call.decoding_from(source):
            held += _unbundle(call, bundle, source, len(share))
    return held[P - me :] + held[: P - me]


def _unbundle(call: Call, bundle: Message, source: int, count: int) -> list[Message]:
    """The messages that lie one behind the other; the first is the sender's own."""
    messages = []
    for i in range(count):
        call.check(wire.Header.read(bundle), (source + i) % call.size)
        length = wire.message_length(bundle)
        messages.append(bundle[:length])
        bundle = bundle[length:]
    if len(bundle):
        raise WireError(f"{len(bundle)} bytes too many behind {count} messages")
    return messages


def cost(rank: int, ranks: int, load: Callable[[int], EntryCount]) -> list[Round]:
    """What this rank sends, if `load` says what the message of a rank holds."""
    rounds = []
    distance = 1
    while distance < ranks:
        count = min(distance, ranks - distance)
        loads = tuple(load((rank + i) % ranks) for i in range(count))
        rounds.append(Round((((rank - distance) % ranks, loads),)))
        distance += count
    return rounds
