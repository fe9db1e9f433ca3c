"""Exchange with neighbours: every rank sends to some ranks and receives from some.

Rounds: 1 (one message per receiver).
Bytes sent per rank: one message per receiver.
Fan-in: the number of ranks that a rank receives from.

All receives and sends are started before the first wait, so that messages go both ways at
once. Over a network, large messages to several receivers start one after the other
(`Transport.in_turn_bytes`): each then has the link for itself. A vector for several receivers is
encoded once. Messages are sent in the order that the caller gives: topologies order them such
that no two ranks send to the same one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import Round
from ..stream import Stream
from . import numbers
from .base import Collective, register

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..costs.workload import EntryCount
    from ..transport import Message
    from .call import Call
    from .numbers import Number


def neighbor_exchange(
    call: Call, items: Mapping[int, Stream | Number], sources: Sequence[int]
) -> tuple[dict[int, Stream | Number], dict[int, Stream | Number]]:
    """Return what each source sent, and for each receiver what it decodes.

    Args:
        call: The call. With `wants_seen`, quantized items are also decoded here.
        items: Stream or number for each receiver. Receivers of the same object get the same
            message.
        sources: Ranks that send to this one.
    """
    receivers: dict[int, list[int]] = {}  # by the identity of their item
    for peer, item in items.items():
        receivers.setdefault(id(item), []).append(peer)
    encoded = {}
    for peers in receivers.values():
        # Different random numbers for each, if they are quantized.
        owner = peers[0] if len(receivers) > 1 else None
        encoded.update(dict.fromkeys(peers, _encode(call, items[peers[0]], owner)))
    messages = {peer: encoded[peer][0] for peer in items}
    seen = {peer: encoded[peer][1] for peer in items}
    received = {
        source: numbers.decode(call, message, source, 0)
        for source, message in exchange_messages(call, messages, sources)
    }
    return received, seen


def _encode(
    call: Call, item: Stream | Number, owner: int | None
) -> tuple[Message, Stream | Number]:
    if isinstance(item, Stream):
        return call.encode(item, 0, see=call.wants_seen, owner=owner)
    return numbers.encode(call, item, 0), item


def exchange_messages(
    call: Call, messages: Mapping[int, Message], sources: Sequence[int]
) -> Iterator[tuple[int, Message]]:
    """Send a message to each receiver, and yield (rank, message) of each source.

    The messages are yielded in the order of `sources`, whichever arrives first.
    """
    return call.exchange_messages(messages, sources, 0)


def cost(counts: Mapping[int, EntryCount]) -> list[Round]:
    """Return the round of a rank, given the entry count of its message to each receiver."""
    sends = tuple((peer, (count,)) for peer, count in counts.items())
    return [Round(sends)] if sends else []


register(Collective("neighbor_exchange", 24))
