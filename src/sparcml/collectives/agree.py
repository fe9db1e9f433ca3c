"""All ranks tell each other what they are about to reduce.

Steps: ceil(log2(P)).
Bytes sent per rank: a bare header of 32 bytes for each other rank.

One small exchange before the first `auto` call of a kind (see habit.py): it fixes the
choice, which must be the same everywhere, and finds a mismatch on every rank at once,
before anything else is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import Workload
from ..errors import MismatchError
from .allgather import allgather_messages
from .base import Shape

if TYPE_CHECKING:
    from ..stream import Stream
    from ..transport import Message
    from .base import Call


def agree(call: Call, x: Stream) -> Workload | MismatchError:
    """The sum to be formed, or in what the ranks differ: the same on every rank."""
    return compare(call, x, allgather_messages(call, call.header_only(x)))


def compare(call: Call, x: Stream, messages: list[Message]) -> Workload | MismatchError:
    """What the ranks' headers say."""
    headers = [call.verify(message, rank) for rank, message in enumerate(messages)]
    shapes = [Shape.of(header) for header in headers]
    for rank, shape in enumerate(shapes):
        if shape != shapes[0]:
            return MismatchError(
                f"{call.name(0)} has {shapes[0]}, but {call.name(rank)} has {shape}: all ranks "
                f"must reduce vectors of the same size, block and dtype"
            )
    return Workload(x.blocks, x.entry_bytes, tuple(h.nnz for h in headers), call.nodes)
