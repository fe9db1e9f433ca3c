"""Agreement on the input of an allreduce: all ranks exchange the headers of their vectors.

Rounds: ceil(log2(P)).
Bytes sent per rank: one header of 32 bytes for each other rank.

The exchange precedes the first `auto` call of a workload (see communicator/choice_cache.py). It
gives all ranks the same input for the selection, and every rank detects a mismatch before
anything else is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import Workload
from ..errors import MismatchError
from .allgather import allgather_messages
from .base import Collective, register
from .checks import Shape

if TYPE_CHECKING:
    from ..stream import Stream
    from ..transport import Message
    from .call import Call


def agree(call: Call, x: Stream) -> Workload | MismatchError:
    """Return the workload, or the mismatch between ranks: the same value on every rank."""
    return compare(call, x, allgather_messages(call, call.header_only(x)))


def compare(call: Call, x: Stream, messages: list[Message]) -> Workload | MismatchError:
    """Compare the headers of all ranks."""
    headers = [call.verify(message, rank) for rank, message in enumerate(messages)]
    shapes = [Shape.of(header) for header in headers]
    for rank, shape in enumerate(shapes):
        if shape != shapes[0]:
            return MismatchError(
                f"{call.name(0)} has {shapes[0]}, but {call.name(rank)} has {shape}; all "
                f"ranks must reduce vectors of the same size, block and dtype"
            )
    return Workload(x.blocks, x.entry_bytes, tuple(h.nnz for h in headers), call.nodes)


register(Collective("agree", 0))
