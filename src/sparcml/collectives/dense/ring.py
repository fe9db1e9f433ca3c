"""Dense allreduce around a ring: each rank only talks to its two neighbours.

Steps: 2 (P - 1).
Bytes sent per rank: 2 (P - 1) / P times those of the dense vector, the least possible.
Fan-in: 1.

The vector is cut into P ranges. In each of the first P - 1 rounds every rank passes one
range to the right and adds its own values to the one that comes from the left, so that
range j travels from rank j once around and ends complete at rank j - 1. In P - 1 more
rounds the complete ranges travel around as they are.

Reference: Patarasuk, Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of
Workstations, JPDC 2009.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload, union
from ...stream import range_offsets, split
from ...stream.ranges import empty, write_range
from ..pipeline import cut, edges_of, sends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...stream import Stream
    from ...transport import Message
    from ..base import Call


def ring(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    edges = range_offsets(x.blocks, call.size)
    ranges = [cut(part) for part in split(call.densify(x), edges)]
    reduced = reduce_around(call, ranges)
    total = empty(x, x.blocks)
    starts = [
        [start + edge for edge in edges_of(end - start, x.entry_bytes)]
        for start, end in pairwise(edges)
    ]
    own, left = (call.rank + 1) % call.size, (call.rank - 1) % call.size
    for start, piece in zip(starts[own], reduced, strict=False):
        message, seen = call.encode(piece, call.size - 1)
        call.send_message(own, message, call.size - 1)
        write_range(total, start, seen)
    for j, i, message in pass_around(call, [len(pieces) for pieces in ranges]):
        start, end = starts[j][i : i + 2]
        call.decode_into(total, start, end - start, message, left, call.size - 1)
    return total


def reduce_around(call: Call, ranges: Sequence[Sequence[Stream]]) -> list[Stream]:
    """The sum of the range after this rank's own, which has been at all ranks.

    Each range consists of pieces, and each piece is sent on as soon as it is added to.
    """
    P, me = call.size, call.rank
    left, right = (me - 1) % P, (me + 1) % P
    sums = list(ranges[me])
    for piece in sums:
        call.send(right, piece, 0)
    for turn in range(P - 1):
        mine = ranges[(left - turn) % P]
        sums = []
        arrivals = call.arrivals([left] * len(mine), turn)
        for piece, (_, message) in zip(mine, arrivals, strict=True):
            sums.append(call.add(call.decode(message, left, turn, piece.blocks), piece))
            if turn < P - 2:
                call.send(right, sums[-1], turn + 1)
    return sums


def pass_around(call: Call, counts: Sequence[int]) -> Iterator[tuple[int, int, Message]]:
    """(range, piece, message) of the others: sent on first, to travel while they are read.

    Range j has counts[j] pieces.
    """
    P, me = call.size, call.rank
    left, right = (me - 1) % P, (me + 1) % P
    for turn in range(P - 1):
        j = (me - turn) % P
        arrivals = call.arrivals([left] * counts[j], P - 1 + turn)
        for i, (_, message) in enumerate(arrivals):
            if turn < P - 2:  # the next rank has sent the last one itself
                call.send_message(right, message, P + turn)
            yield j, i, message


def cost(rank: int, workload: Workload) -> list[Round]:
    """The sum grows by a rank in each round, then is whole; values are written."""
    return [
        Round(
            tuple(s for peer, (load,) in turn.sends for s in sends(peer, workload, load)),
            written=workload.blocks / workload.ranks,
        )
        for turn in messages(rank, workload)
    ]


def messages(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends, round by round, if ranges are not cut."""
    P = workload.ranks
    edges = range_offsets(workload.blocks, P)

    @cache  # ranges have one of two sizes
    def load(first: int, ranks: int, span: int) -> EntryCount:
        return union(workload, [(first + i) % P for i in range(ranks)], span)

    rounds = []
    for turn in range(2 * (P - 1)):
        j = (rank - turn) % P
        span = edges[j + 1] - edges[j]
        part = load(j, turn + 1, span) if turn < P - 1 else load(0, P, span)
        rounds.append(Round((((rank + 1) % P, (part,)),)))
    return rounds
