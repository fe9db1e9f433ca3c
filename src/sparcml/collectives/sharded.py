"""Dense allreduce by a sharded parameter server: every rank is the master of a range.

Steps: 2 (P - 1 messages each).
Bytes sent per rank: 2 (P - 1) / P times those of the dense vector.
Fan-in: P - 1, each with N / P values.

Every rank sends each range directly to its owner, the owner adds in the order of ranks
and sends the sum directly back to everyone. No rank carries more than another, but each
talks to all others at once.

Reference: Li et al.: Scaling Distributed Machine Learning with the Parameter Server,
OSDI 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream import bounds
from ..stream.parts import blank, put
from ..stream.switch import densify
from . import split_reduce
from .cost import Problem, Round, union

if TYPE_CHECKING:
    from ..stream import Stream
    from .base import Call


def sharded(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    P, me = call.size, call.rank
    edges = bounds(x.blocks, P)
    reduced = call.add_many(split_reduce.collect(call, densify(x)))
    message, reduced = call.encode(reduced, 1)
    for step in range(1, P):
        call.send_message((me + step) % P, message, 1)
    total = blank(x, x.blocks)
    put(total, edges[me], reduced)
    for step in range(1, P):
        owner = (me - step) % P
        span = edges[owner + 1] - edges[owner]
        put(total, edges[owner], call.receive(owner, 1, span))
    return total


def cost(rank: int, problem: Problem) -> list[Round]:
    """What this rank sends and adds."""
    P, N = problem.ranks, problem.blocks
    edges = bounds(N, P)
    load = union(problem, range(P), edges[rank + 1] - edges[rank])
    sends = [((rank + step) % P, (load,)) for step in range(1, P)]
    parts = [turn.sends for turn in split_reduce.cost(rank, problem)]
    return [Round(s, written=N * (P - 1) / P) for s in [*parts, tuple(sends)] if s]
