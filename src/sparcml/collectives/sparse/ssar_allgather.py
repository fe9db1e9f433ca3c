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
from typing import TYPE_CHECKING, Protocol

from ...costs.workload import EntryCount, Round, Workload
from .. import allgather
from ..base import Algorithm, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ...transport import Message
    from ..call import Call


class Passes(Protocol):
    """Two passes over a dense vector, before and after its code is exchanged."""

    def encode(self, seed: int, code: Message) -> int:
        """Write the code of the vector; return the number of values other than +0.0."""

    def decode(self, codes: Sequence[Message], own: int) -> None:
        """Use the codes of all ranks, of which `own` is this rank's."""


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


def in_two_passes(call: Call, x: Stream, passes: Passes) -> Stream | None:
    """Exchange the codes of a dense vector: the messages are those of `ssar_allgather`.

    Returns:
        None after both passes. If a rank has sent its vector in a smaller format than its code,
        the second pass is not made: the sum is returned, and `seen` of the call is set.
    """
    message = call.encode_code(x, 0, passes.encode)
    if message is None:
        message, _ = call.encode(x, 0, see=False)
    messages = allgather.allgather_messages(call, message)
    codes = [call.code_of(m, rank, 0) for rank, m in enumerate(messages)]
    complete = [code for code in codes if code is not None]
    if len(complete) == call.size:
        with call.time_adding(x):
            passes.decode(complete, call.rank)
        return None
    if call.wants_seen:
        call.seen, call.offsets = [call.decode(message, call.rank, 0)], (0, x.blocks)
    return reduce(call.add, (call.decode(m, rank, 0) for rank, m in enumerate(messages)))


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
