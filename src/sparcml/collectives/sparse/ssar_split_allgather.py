"""Sparse allreduce by split and allgather: for large data with a sparse result.

Rounds: 2 (P - 1 messages each).
Bytes sent per rank: its stream outside its range, then its reduced range P - 1 times;
between 2 (P - 1) / P and P times one rank's stream if indices are spread evenly.
Fan-in: P - 1.

Each rank reduces one range, and the reduced ranges are gathered. The ranges are disjoint, so
that joining them is a concatenation.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(SSAR_Split_allgather). The paper folds to a power of two; this implementation does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ...stream import join, range_offsets
from .. import split
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def ssar_split_allgather(call: Call, x: Stream) -> Stream:
    """Return the result on all ranks."""
    reduced = call.add_many(split.scatter_ranges(call, x))
    return join(split.gather_ranges(call, reduced), call.offsets)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank, and a last one without messages that joins the ranges."""
    P, everyone = workload.ranks, range(workload.ranks)
    offsets = range_offsets(workload.blocks, P)
    reduced = union(workload, everyone, offsets[rank + 1] - offsets[rank])
    rounds = split.scatter_cost(rank, workload) + split.gather_cost(rank, P, reduced)
    return [*rounds, Round(written=2 * union(workload, everyone).expected)]


register(
    Algorithm(
        "ssar_split_allgather", 4, ssar_split_allgather, cost, supports_quantization=True
    )
)
