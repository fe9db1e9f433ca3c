"""The second half of the split algorithms: every rank's reduced range, to all others.

Steps: 1 (P - 1 messages).
Bytes sent per rank: its reduced range, P - 1 times.

Every rank sends its own message to each of the others, beginning with the next rank, and
receives from the previous ones in the same order. Only a few messages are on their way at
a time, so that the first can be decoded while the link is busy with the others. Nobody
waits for a neighbour to pass something on: in a tree a rank that is late, or has to share
its processor, holds up all behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import EntryCount, Round

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..transport import Message
    from .base import Call


WINDOW = 4  # messages on their way at a time


def spread(call: Call, mine: Message, turn: int) -> Iterator[tuple[int, Message]]:
    """(rank, its message), still coded: this rank's own first, then as they arrive."""
    P, me = call.size, call.rank
    for step in range(1, min(P, WINDOW)):
        call.send_message((me + step) % P, mine, turn)
    yield me, mine
    arriving = call.arrivals([(me - step) % P for step in range(1, P)], turn)
    for step in range(WINDOW, P + WINDOW - 1):
        if step < P:
            call.send_message((me + step) % P, mine, turn)
        yield next(arriving)


def cost(rank: int, ranks: int, load: EntryCount) -> list[Round]:
    """What this rank sends, if `load` is its own message."""
    peers = [(rank + step) % ranks for step in range(1, ranks)]
    return [Round(tuple((peer, (load,)) for peer in peers))] if peers else []
