"""Pipelining: a long dense range is sent in segments, reduced while the next is in flight.

A range up to the length of one segment is one message.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ..stream import range_offsets, split
from ..stream.ranges import empty, write_range
from .fold import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..costs.workload import EntryCount, Workload
    from ..stream import Stream
    from ..transport import Message
    from .call import Call

SEGMENT_BYTES = 1 << 20


def segment_offsets(blocks: int, entry_bytes: float) -> list[int]:
    """Return the offsets of the segments of a range, with its end."""
    count = math.ceil(blocks * entry_bytes / SEGMENT_BYTES)
    return range_offsets(blocks, max(1, min(blocks, count)))


def segments(part: Stream) -> list[Stream]:
    """Split a range into its segments."""
    return split(part, segment_offsets(part.blocks, part.entry_bytes))


def send(call: Call, peer: int, part: Stream, round: int) -> None:
    """Start sending a range to a peer."""
    for segment in segments(part):
        call.send(peer, segment, round)


def add(call: Call, peer: int, part: Stream, round: int) -> Stream:
    """Return the reduction of a dense range and the peer's, in place where possible."""
    result = part if part.is_scratch else empty(part, part.blocks)
    for start, end, message in _arrivals(call, peer, part, part.blocks, round):
        theirs = call.decode(message, peer, round, end - start)
        ours, out = (split(s, (start, end))[0] for s in (part, result))
        call.add_into(out, *((ours, theirs) if call.rank < peer else (theirs, ours)))
    return result


def receive(
    call: Call, peer: int, out: Stream, start: int, blocks: int, round: int
) -> None:
    """Receive a range from a peer into a dense stream."""
    for first, end, message in _arrivals(call, peer, out, blocks, round):
        call.decode_into(out, start + first, end - first, message, peer, round)


def add_and_forward(
    call: Call, source: int, part: Sequence[Stream], round: int, target: int | None
) -> list[Stream]:
    """Reduce a range with the one from `source`, and send each segment on at once.

    Args:
        call: The call.
        source: Rank that the segments come from; its values are on the left.
        part: Segments of this rank.
        round: Round of the received messages; those sent on belong to the next one.
        target: Rank that the results are sent to, or None.

    Returns:
        The reduced segments.
    """
    reduced = []
    arrivals = call.arrivals([source] * len(part), round)
    for segment, (_, message) in zip(part, arrivals, strict=True):
        theirs = call.decode(message, source, round, segment.blocks)
        reduced.append(call.add(theirs, segment))
        if target is not None:
            call.send(target, reduced[-1], round + 1)
    return reduced


def forward(
    call: Call, source: int, count: int, round: int, target: int | None
) -> Iterator[Message]:
    """Yield the messages of a range; each is sent on before this rank decodes it."""
    for _, message in call.arrivals([source] * count, round):
        if target is not None:
            call.send_message(target, message, round + 1)
        yield message


class RangeWriter:
    """Dense result that is assembled from the segments of its ranges.

    Args:
        like: Stream whose size, block and dtype the result has.
        offsets: Offsets of the ranges.
    """

    def __init__(self, like: Stream, offsets: Sequence[int]) -> None:
        self.result = empty(like, like.blocks)
        self._offsets = [
            [start + offset for offset in segment_offsets(end - start, like.entry_bytes)]
            for start, end in pairwise(offsets)
        ]

    def segments(self, j: int) -> int:
        """Return the number of segments of range j."""
        return len(self._offsets[j]) - 1

    def send(
        self, call: Call, peer: int, j: int, part: Sequence[Stream], round: int
    ) -> None:
        """Write the segments of range j, and send them to a peer."""
        for start, segment in zip(self._offsets[j], part, strict=False):
            message, seen = call.encode(segment, round)
            call.send_message(peer, message, round)
            write_range(self.result, start, seen)

    def decode(
        self, call: Call, source: int, j: int, messages: Iterator[Message], round: int
    ) -> None:
        """Write range j from its messages."""
        for (start, end), message in zip(pairwise(self._offsets[j]), messages, strict=True):
            call.decode_into(self.result, start, end - start, message, source, round)


def folded(
    call: Call, x: Stream, last: int, run: Callable[[Fold, int, Stream], Stream]
) -> Stream:
    """Run an algorithm for a power of two of ranks on any number of ranks.

    Args:
        call: The call. Round 0 folds.
        x: Dense vector of this rank.
        last: Round that unfolds, after those of the algorithm.
        run: Algorithm, as a function of the fold, the virtual rank and its vector.
    """
    fold = Fold(call.size)
    me, partner = fold.virtual(call.rank), fold.partner(call.rank)
    if me is None:
        assert partner is not None
        return delegate(call, partner, x, 0, last)
    if partner is None:
        return run(fold, me, x)
    result = run(fold, me, add(call, partner, x, 0))
    send(call, partner, result, last)
    return result


def delegate(call: Call, partner: int, x: Stream, first: int, last: int) -> Stream:
    """Send the vector to a partner in round `first`; receive the result in round `last`."""
    send(call, partner, x, first)
    result = empty(x, x.blocks)
    receive(call, partner, result, 0, x.blocks, last)
    return result


def _arrivals(
    call: Call, peer: int, x: Stream, blocks: int, round: int
) -> Iterator[tuple[int, int, Message]]:
    offsets = segment_offsets(blocks, x.entry_bytes)
    messages = call.arrivals([peer] * (len(offsets) - 1), round)
    for (start, end), (_, message) in zip(pairwise(offsets), messages, strict=True):
        yield start, end, message


def segment_sends(
    peer: int, workload: Workload, count: EntryCount
) -> tuple[tuple[int, tuple[EntryCount, ...]], ...]:
    """Return the messages of a range for a cost, with entries spread over its segments."""
    offsets = segment_offsets(count.blocks, workload.entry_bytes)
    spans = [end - start for start, end in pairwise(offsets)]
    messages = {span: (peer, (count.part(span),)) for span in set(spans)}  # at most two
    return tuple(messages[span] for span in spans)
