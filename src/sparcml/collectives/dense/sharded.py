"""Dense allreduce by a sharded parameter server: every rank is the master of a range.

Rounds: 2 (P - 1 messages each).
Bytes sent per rank: 2 (P - 1) / P times the dense vector.
Fan-in: P - 1, each with N / P values.

Every rank sends each range directly to its owner. The owner adds in rank order and sends
the result directly to all ranks. The load is balanced, but each rank communicates with all
others at the same time.

Reference: Li et al.: Scaling Distributed Machine Learning with the Parameter Server,
OSDI 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ...stream import range_offsets
from ...stream.ranges import empty
from .. import split
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def sharded(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""
    reduced = call.add_many(split.scatter_ranges(call, call.densify(x)))
    message, _ = call.encode(reduced, 1)
    return split.gather_into(call, empty(x, x.blocks), message)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    P, N = workload.ranks, workload.blocks
    offsets = range_offsets(N, P)
    reduced = union(workload, range(P), offsets[rank + 1] - offsets[rank])
    rounds = split.scatter_cost(rank, workload) + split.gather_cost(rank, P, reduced)
    return [Round(round.sends, written=N * (P - 1) / P) for round in rounds]


register(Algorithm("sharded", 10, sharded, cost, is_dense=True, planned=False))
