"""All-to-all: every rank sends a vector of its own to every other rank.

Rounds: 1 (P - 1 messages).
Bytes sent per rank: its P - 1 messages to other ranks.
Fan-in: P - 1.

Every message is sent directly, starting with the next rank, and received from the previous
ranks in the same order. A few messages are in flight at a time. Vectors may differ in size and
type, and each is sent in its smallest format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import Round
from . import numbers
from .base import Collective, register
from .split import exchange_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs.workload import EntryCount
    from ..stream import Stream
    from ..transport import Message
    from .call import Call
    from .numbers import Number


def alltoall(call: Call, items: Sequence[Stream | Number]) -> list[Stream | Number]:
    """Return the streams or numbers that all ranks sent to this one, by rank."""

    def message_to(peer: int) -> Message:
        return numbers.encode(call, items[peer], 0)

    received = {
        source: numbers.decode(call, message, source, 0)
        for source, message in exchange_messages(call, message_to, 0)
    }
    return [received[rank] for rank in range(call.size)]


def cost(rank: int, counts: Sequence[EntryCount]) -> list[Round]:
    """Return the round of a rank, given the entry count of its message to each rank."""
    ranks = len(counts)
    peers = [(rank + step) % ranks for step in range(1, ranks)]
    return [Round(tuple((peer, (counts[peer],)) for peer in peers))] if peers else []


register(Collective("alltoall", 20))
