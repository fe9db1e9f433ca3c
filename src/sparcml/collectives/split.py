"""Reduce-scatter and allgather of ranges: the two halves of the split algorithms.

Rounds: 1 for each half (P - 1 messages each).
Bytes sent per rank: in the first half its stream outside its own range, in the second half
its reduced range P - 1 times.
Fan-in: P - 1.

The vector is cut into P ranges, and rank j owns range j. In the first half every rank sends
its part of each range directly to the owner, starting with the next rank, so that not all
ranks send to rank 0 first. The owner reduces the parts in rank order, whichever arrived
first. Its own part is used as it is, unless the quantizer requires that all values are
quantized.

In the second half every rank sends its reduced range directly to all others, starting with
the next rank, and receives from the previous ranks in the same order. Only a few messages are
in flight at a time, so that the first one can be decoded while the link is busy with the
others. No rank waits for a neighbour to forward a message: in a tree, a rank that is late
or shares its processor delays all ranks behind it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ..costs.workload import EntryCount, Round, Workload
from ..stream import add, difference, range_offsets, split
from .base import Collective, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..stream import Stream
    from ..transport import Message
    from .call import Call


WINDOW = 8  # messages in flight per rank in the second half


def scatter_ranges(
    call: Call, x: Stream, offsets: Sequence[int] | None = None, round: int = 0
) -> list[Stream]:
    """Send each range to its owner, and return all ranks' parts of this rank's range.

    Args:
        call: The call. Its `seen` and `offsets` are set.
        x: Vector of this rank.
        offsets: Offsets of the ranges; ranges of nearly equal length by default.
        round: Number of the round.

    Returns:
        The parts in rank order.
    """
    call.offsets = range_offsets(x.blocks, call.size) if offsets is None else offsets
    parts = split(x, call.offsets)
    if call.quantizer is not None and call.quantizer.quantizes_own:
        _, parts[call.rank] = call.encode(parts[call.rank], round)
    own = parts[call.rank].read_only()  # `seen` still needs it after the reduction
    call.seen = list(parts)
    for step in range(1, call.size):
        owner = (call.rank + step) % call.size
        call.seen[owner] = call.send(owner, parts[owner], round, see=call.wants_seen)
    received = {call.rank: own}
    sources = [(call.rank - step) % call.size for step in range(1, call.size)]
    for source, message in call.arrivals(sources, round):
        received[source] = call.decode(message, source, round, own.blocks)
    return [received[rank] for rank in range(call.size)]


def encode_range(call: Call, reduced: Stream, round: int = 1) -> Message:
    """Encode this rank's reduced range for all ranks."""
    message, decoded = call.encode(reduced, round, see=call.wants_seen, reduced=True)
    if call.quantizer is not None and call.wants_seen:
        # The quantization error of the reduced range counts as the owner's own.
        call.seen[call.rank] = add(call.seen[call.rank], difference(decoded, reduced))
    return message


def gather_messages(
    call: Call, message: Message, round: int = 1
) -> Iterator[tuple[int, Message]]:
    """Send this rank's message to all ranks, and yield (rank, message) of all ranks."""
    return exchange_messages(call, lambda _: message, round)


def exchange_messages(
    call: Call, message_to: Callable[[int], Message], round: int
) -> Iterator[tuple[int, Message]]:
    """Send a message to each rank, and yield (rank, message) of all ranks.

    This rank's own message comes first, then the others as they are received.

    Args:
        call: The call.
        message_to: Returns the message to a rank.
        round: Number of the round.
    """
    P, me = call.size, call.rank
    peers = [(me + step) % P for step in range(P)]
    for peer in peers[1:WINDOW]:
        call.send_message(peer, message_to(peer), round)
    yield me, message_to(me)
    arrivals = call.arrivals([(me - step) % P for step in range(1, P)], round)
    for step in range(WINDOW, P + WINDOW - 1):
        if step < P:
            call.send_message(peers[step], message_to(peers[step]), round)
        yield next(arrivals)


def gather_ranges(call: Call, reduced: Stream, round: int = 1) -> list[Stream]:
    """Return the reduced ranges of all ranks.

    All ranks decode the same bytes, the owner of a range too.
    """
    spans = [end - start for start, end in pairwise(call.offsets)]
    ranges = [reduced] * call.size
    messages = gather_messages(call, encode_range(call, reduced, round), round)
    for rank, message in messages:
        ranges[rank] = call.decode(message, rank, round, spans[rank], as_held=False)
    call.finish()  # messages make no progress while the caller computes
    return ranges


def gather_into(call: Call, out: Stream, message: Message, round: int = 1) -> Stream:
    """Write the reduced ranges of all ranks to a dense stream, and return it."""
    spans = list(pairwise(call.offsets))
    for rank, received in gather_messages(call, message, round):
        start, end = spans[rank]
        call.decode_into(out, start, end - start, received, rank, round)
    return out


def scatter_cost(rank: int, workload: Workload) -> list[Round]:
    """Return the round of the first half with its reduction."""
    P, N = workload.ranks, workload.blocks
    offsets = range_offsets(N, P)
    k = workload.nnz[rank]
    sends = []
    for step in range(1, P):
        owner = (rank + step) % P
        span = offsets[owner + 1] - offsets[owner]
        expected = k * span / N if N else 0.0
        count = EntryCount(max(0, k - (N - span)), expected, min(k, span), span)
        sends.append((owner, (count,)))
    if not sends:
        return []
    # Full vectors are added without merging, and the first of them is only copied.
    full = sum(k for k in workload.nnz if k == N)
    return [Round(tuple(sends), (sum(workload.nnz) - full) / P, max(0, full - N) / P)]


def gather_cost(rank: int, ranks: int, count: EntryCount) -> list[Round]:
    """Return the round of the second half, given the entry count of the reduced range."""
    peers = [(rank + step) % ranks for step in range(1, ranks)]
    return [Round(tuple((peer, (count,)) for peer in peers))] if peers else []


register(Collective("reduce_scatter", 8))
