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
from typing import TYPE_CHECKING

from ..stream import bounds, split
from ..stream.parts import blank, put
from ..stream.switch import densify
from .cost import Load, Problem, Round, union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..stream import Stream
    from ..transport import Message
    from .base import Call


def ring(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    edges = bounds(x.blocks, call.size)
    reduced = reduce_around(call, split(densify(x), edges))
    message, reduced = call.encode(reduced, call.size - 1)
    call.send_message((call.rank + 1) % call.size, message, call.size - 1)
    total = blank(x, x.blocks)
    put(total, edges[(call.rank + 1) % call.size], reduced)
    for j, arrived in pass_around(call):
        put(total, edges[j], decode(call, arrived, edges[j + 1] - edges[j]))
    return total


def reduce_around(call: Call, parts: Sequence[Stream]) -> Stream:
    """The sum of the range after this rank's own, which has been at all ranks."""
    P, me = call.size, call.rank
    part = parts[me]
    for turn in range(P - 1):
        call.send((me + 1) % P, part, turn)
        mine = parts[(me - 1 - turn) % P]
        part = call.add(call.receive((me - 1) % P, turn, mine.blocks), mine)
    return part


def pass_around(call: Call) -> Iterator[tuple[int, Message]]:
    """The other ranges, still coded: sent on first, so that they travel while read."""
    P, me = call.size, call.rank
    for turn in range(P - 1):
        message = call.receive_message((me - 1) % P, P - 1 + turn)
        if turn < P - 2:  # the next rank has sent the last one itself
            call.send_message((me + 1) % P, message, P + turn)
        yield (me - turn) % P, message


def decode(call: Call, message: Message, blocks: int) -> Stream:
    """A range from the second half, as it was sent."""
    left = (call.rank - 1) % call.size
    return call.decode(message, left, call.size - 1, blocks, as_held=False)


def cost(rank: int, problem: Problem) -> list[Round]:
    """The sum grows by a rank in each round, then is whole; values are written."""
    return [
        Round(turn.sends, written=problem.blocks / problem.ranks)
        for turn in messages(rank, problem)
    ]


def messages(rank: int, problem: Problem) -> list[Round]:
    """What this rank sends, round by round."""
    P = problem.ranks
    edges = bounds(problem.blocks, P)

    @cache  # ranges have one of two sizes
    def load(first: int, ranks: int, span: int) -> Load:
        return union(problem, [(first + i) % P for i in range(ranks)], span)

    rounds = []
    for turn in range(2 * (P - 1)):
        j = (rank - turn) % P
        span = edges[j + 1] - edges[j]
        part = load(j, turn + 1, span) if turn < P - 1 else load(0, P, span)
        rounds.append(Round((((rank + 1) % P, (part,)),)))
    return rounds
