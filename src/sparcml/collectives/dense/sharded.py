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

from ...costs.workload import Round, Workload, union
from ...stream import range_offsets
from ...stream.ranges import empty
from .. import split_gather, split_reduce
from ..sparse.dsar_split_allgather import fill

if TYPE_CHECKING:
    from ...stream import Stream
    from ..base import Call


def sharded(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    reduced = call.add_many(split_reduce.collect(call, call.densify(x)))
    message, _ = call.encode(reduced, 1)
    return fill(call, empty(x, x.blocks), message)


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds."""
    P, N = workload.ranks, workload.blocks
    edges = range_offsets(N, P)
    load = union(workload, range(P), edges[rank + 1] - edges[rank])
    turns = split_reduce.cost(rank, workload) + split_gather.cost(rank, P, load)
    return [Round(turn.sends, written=N * (P - 1) / P) for turn in turns]
