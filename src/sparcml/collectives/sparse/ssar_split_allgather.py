"""Sparse allreduce by split and allgather: for large data with a sparse result.

Steps: 2 (P - 1 messages each).
Bytes sent per rank: its stream outside its range, then its reduced range P - 1 times;
between 2 (P - 1) / P and P times those of one rank's stream if indices are spread evenly.

Each rank reduces one range, and the reduced ranges are gathered: since they are disjoint,
joining them is concatenation.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(SSAR_Split_allgather). The paper folds to a power of two; this does not.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ...stream import add, difference, join, range_offsets
from .. import split_gather, split_reduce
from ..split_gather import spread

if TYPE_CHECKING:
    from ...stream import Stream
    from ...transport import Message
    from ..base import Call


def ssar_split_allgather(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks."""
    reduced = call.add_many(split_reduce.collect(call, x))
    return join(gather(call, reduced), call.edges)


def gather(call: Call, reduced: Stream, turn: int = 1) -> list[Stream]:
    """Every rank's reduced range; all ranks, the owner too, decode the same bytes."""
    spans = [b - a for a, b in pairwise(call.edges)]
    ranges = [reduced] * call.size
    for rank, message in spread(call, encode(call, reduced, turn), turn):
        ranges[rank] = call.decode(message, rank, turn, spans[rank], as_held=False)
    call.finish()  # what is still leaving would stand still while the caller computes
    return ranges


def encode(call: Call, reduced: Stream, turn: int) -> Message:
    """This rank's range for all."""
    message, coded = call.encode(reduced, turn, see=call.wants_seen, summed=True)
    if call.quantizer is not None and call.wants_seen:
        # The owner answers for what its coding changed.
        call.seen[call.rank] = add(call.seen[call.rank], difference(coded, reduced))
    return message


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends, round by round."""
    edges = range_offsets(workload.blocks, workload.ranks)

    everyone = range(workload.ranks)
    reduced = union(workload, everyone, edges[rank + 1] - edges[rank])
    rounds = split_reduce.cost(rank, workload)
    rounds += split_gather.cost(rank, workload.ranks, reduced)
    return [*rounds, Round(written=2 * union(workload, everyone).expected)]  # joining them
