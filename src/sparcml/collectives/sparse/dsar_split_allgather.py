"""Sparse allreduce by split and allgather, for a sum that becomes dense.

Steps: 2 (P - 1 messages each).
Bytes sent per rank: its stream outside its range, then P - 1 dense ranges of N / P.

Like ssar_split_allgather, but the owner sums into a dense range from the start, so each
part costs only its own entries, and the result is dense.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(DSAR_Split_allgather).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ... import buffer_pool
from ...costs.workload import Round, Workload
from ...stream import Stream, identity
from ...stream.ranges import empty
from .. import split_reduce
from ..split_gather import spread
from . import ssar_split_allgather as ssar

if TYPE_CHECKING:
    from ...transport import Message
    from ..base import Call


def dsar_split_allgather(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    parts = split_reduce.collect(call, x)
    reduced = empty_like(parts[0], identity(call.op))
    for part in parts:
        reduced = call.add(reduced, part)
    return fill(call, empty(reduced, x.blocks), ssar.encode(call, reduced, 1))


def fill(call: Call, whole: Stream, mine: Message) -> Stream:
    """Every rank's reduced range, put where it belongs."""
    spans = list(pairwise(call.edges))
    for rank, message in spread(call, mine, 1):
        start, end = spans[rank]
        call.decode_into(whole, start, end - start, message, rank, 1)
    return whole


def empty_like(part: Stream, fill: float) -> Stream:
    """A dense stream with nothing in it yet."""
    values = buffer_pool.full(part.size, fill, part.dtype)
    return Stream.unchecked(part.size, None, values, part.block, fill, scratch=True)


def cost(rank: int, workload: Workload) -> list[Round]:
    """The same messages as with a sparse result, but dense ranges are written."""
    *rounds, _ = ssar.cost(rank, workload)  # all but joining sparse ranges
    return [*rounds, Round(written=workload.blocks * (1 + 1 / workload.ranks))]
