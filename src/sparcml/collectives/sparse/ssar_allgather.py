"""Sparse allreduce by allgather: every rank receives all vectors and adds them itself.

Rounds: ceil(log2(P)).
Bytes sent per rank: the streams of the P - 1 other ranks in total.

Vectors whose indices hardly overlap have a sum of almost P times their entries, and no algorithm
sends much less. Each value is quantized once, by its sender, where the split algorithms quantize
the reduced range once more. On two ranks it sends no more than they do, in one round.

Reference: the allgather of compressed gradients in Lin, Han, Mao, Wang, Dally: Deep Gradient
Compression, ICLR 2018.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload
from .. import allgather
from ..base import Algorithm, register

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def ssar_allgather(call: Call, x: Stream) -> Stream:
    """Return the result on all ranks."""
    message, seen = call.encode(x, 0, see=call.wants_seen)
    call.seen, call.offsets = [seen], (0, x.blocks)
    messages = allgather.allgather_messages(call, message)
    decoded = (call.decode(m, rank, 0) for rank, m in enumerate(messages))
    if call.quantizer is not None and x.is_dense:  # one vector at a time, to save memory
        return reduce(call.add, decoded)
    # A message is also in flight to other ranks, and may be x itself.
    return call.add_many([stream.read_only() for stream in decoded])


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank, and a last one that adds all vectors."""

    def count(source: int) -> EntryCount:
        k = workload.nnz[source]
        return EntryCount(k, k, k, workload.blocks)

    rounds = allgather.cost(rank, workload.ranks, count)
    full = sum(k for k in workload.nnz if k == workload.blocks)
    sparse = sum(workload.nnz) - full
    return [*rounds, Round(merged=sparse, written=max(0, full - workload.blocks))]


register(
    Algorithm(
        "ssar_allgather",
        26,
        ssar_allgather,
        cost,
        supports_quantization=True,
        quantized_only=True,
    )
)
