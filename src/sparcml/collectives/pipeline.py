"""Long dense ranges travel in pieces: one is added while the next is on its way.

Up to a piece's length, a range is one message.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ..stream import range_offsets, split
from ..stream.ranges import empty
from .fold import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..costs.workload import EntryCount, Workload
    from ..stream import Stream
    from ..transport import Message
    from .base import Call

PIECE_BYTES = 1 << 20


def edges_of(blocks: int, entry_bytes: float) -> list[int]:
    """Where the pieces of a range begin, and its end."""
    count = math.ceil(blocks * entry_bytes / PIECE_BYTES)
    return range_offsets(blocks, max(1, min(blocks, count)))


def send(call: Call, peer: int, part: Stream, turn: int) -> None:
    """Send a range to a peer."""
    for piece in cut(part):
        call.send(peer, piece, turn)


def cut(part: Stream) -> list[Stream]:
    """The pieces of a range."""
    return split(part, edges_of(part.blocks, part.entry_bytes))


def add(call: Call, peer: int, mine: Stream, turn: int) -> Stream:
    """The sum of a dense range and the peer's, in place if the range is ours to change."""
    total = mine if mine.is_scratch else empty(mine, mine.blocks)
    for start, end, message in _arrivals(call, peer, mine, mine.blocks, turn):
        theirs = call.decode(message, peer, turn, end - start)
        ours, out = (split(s, (start, end))[0] for s in (mine, total))
        call.add_into(out, *((ours, theirs) if call.rank < peer else (theirs, ours)))
    return total


def folded(
    call: Call, x: Stream, last: int, run: Callable[[Fold, int, Stream], Stream]
) -> Stream:
    """A sum by an algorithm for a power of two of ranks; round 0 folds, `last` unfolds.

    Args:
        call: The call.
        x: This rank's dense vector.
        last: The round after those of the algorithm.
        run: The algorithm, of the fold, the virtual rank and its vector.
    """
    fold = Fold(call.size)
    me, partner = fold.virtual(call.rank), fold.partner(call.rank)
    if me is None:  # the even rank of a pair sits out
        assert partner is not None
        return sit_out(call, partner, x, 0, last)
    if partner is None:
        return run(fold, me, x)
    total = run(fold, me, add(call, partner, x, 0))
    send(call, partner, total, last)
    return total


def sit_out(call: Call, partner: int, x: Stream, first: int, last: int) -> Stream:
    """Leave the vector to a partner, who sends the sum in the end."""
    send(call, partner, x, first)
    total = empty(x, x.blocks)
    receive(call, partner, total, 0, x.blocks, last)
    return total


def receive(
    call: Call, peer: int, whole: Stream, start: int, blocks: int, turn: int
) -> None:
    """Take a range of `whole` from the peer."""
    for first, end, message in _arrivals(call, peer, whole, blocks, turn):
        call.decode_into(whole, start + first, end - first, message, peer, turn)


def _arrivals(
    call: Call, peer: int, x: Stream, blocks: int, turn: int
) -> Iterator[tuple[int, int, Message]]:
    edges = edges_of(blocks, x.entry_bytes)
    messages = call.arrivals([peer] * (len(edges) - 1), turn)
    for (start, end), (_, message) in zip(pairwise(edges), messages, strict=True):
        yield start, end, message


def sends(
    peer: int, workload: Workload, load: EntryCount
) -> tuple[tuple[int, tuple[EntryCount, ...]], ...]:
    """The messages of a range, for a cost: entries are spread over its pieces."""
    edges = edges_of(load.blocks, workload.entry_bytes)
    spans = [end - start for start, end in pairwise(edges)]
    messages = {span: (peer, (load.part(span),)) for span in set(spans)}  # one or two sizes
    return tuple(messages[span] for span in spans)
