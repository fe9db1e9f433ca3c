"""Sparse allreduce by split and allgather, with a dense result.

Rounds: 2 (P - 1 messages each).
Bytes sent per rank: its stream outside its range, then its dense range of N / P values
P - 1 times.
Fan-in: P - 1.

The algorithm is that of ssar_split_allgather, but the owner reduces into a dense range from
the start, so that each part costs only its own entries.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(DSAR_Split_allgather).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import buffer_pool
from ...costs.workload import Round, Workload
from ...stream import Stream, identity
from ...stream.ranges import empty
from .. import split
from ..base import Algorithm, register
from . import ssar_split_allgather as ssar

if TYPE_CHECKING:
    from ..call import Call


def dsar_split_allgather(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""
    parts = split.scatter_ranges(call, x)
    reduced = filled_like(parts[0], identity(call.op, x.dtype))
    for part in parts:
        reduced = call.add(reduced, part)
    message = split.encode_range(call, reduced)
    return split.gather_into(call, empty(reduced, x.blocks), message)


def filled_like(part: Stream, fill: float) -> Stream:
    """Return a dense stream that holds the fill value everywhere."""
    values = buffer_pool.full(part.size, fill, part.dtype)
    return Stream.unchecked(part.size, None, values, part.block, fill, scratch=True)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of ssar_split_allgather, with dense ranges written at the end."""
    *rounds, _ = ssar.cost(rank, workload)
    return [*rounds, Round(written=workload.blocks * (1 + 1 / workload.ranks))]


register(
    Algorithm(
        "dsar_split_allgather",
        5,
        dsar_split_allgather,
        cost,
        supports_quantization=True,
        dense_result=True,
    )
)
