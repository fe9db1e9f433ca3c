"""Sparse allreduce by split and allgather: for large data with a sparse result.

Steps: 1 (P - 1 messages), then ceil(log2(P)).
Bytes sent per rank: its stream outside its range, then P - 1 reduced ranges; between
2 (P - 1) / P and P times those of one rank's stream if indices are spread evenly.

Each rank reduces one range, and the reduced ranges are gathered: since they are disjoint,
joining them is concatenation.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(SSAR_Split_allgather). The paper folds to a power of two; this does not.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ..stream import add, bounds, difference, join
from . import allgather, split_reduce
from .cost import Load, Problem, Round, union

if TYPE_CHECKING:
    from ..stream import Stream
    from .base import Call


def ssar_split_allgather(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks."""
    reduced = call.add_many(split_reduce.collect(call, x))
    return join(gather(call, x, reduced), bounds(x.blocks, call.size))


def gather(call: Call, x: Stream, reduced: Stream) -> list[Stream]:
    """Every rank's reduced range; all ranks, the owner too, decode the same bytes."""
    edges = bounds(x.blocks, call.size)
    message, coded = call.encode(reduced, 1)
    if call.quantizer is not None:  # the owner answers for what its coding changed
        call.seen[call.rank] = add(call.seen[call.rank], difference(coded, reduced))
    spans = [b - a for a, b in pairwise(edges)]
    return [
        call.decode(m, rank, 1, spans[rank], as_held=False)
        for rank, m in enumerate(allgather.allgather_messages(call, message, 1))
    ]


def cost(rank: int, problem: Problem) -> list[Round]:
    """What this rank sends, round by round."""
    edges = bounds(problem.blocks, problem.ranks)

    @cache  # ranges have one of two sizes
    def sum_of(span: int) -> Load:
        return union(problem, range(problem.ranks), span)

    def reduced(owner: int) -> Load:
        return sum_of(edges[owner + 1] - edges[owner])

    rounds = split_reduce.cost(rank, problem) + allgather.cost(rank, problem.ranks, reduced)
    return [*rounds, Round(written=2 * sum_of(problem.blocks).likely)]  # joining them
