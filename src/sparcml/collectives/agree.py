"""Agreement on the input of a collective: all ranks exchange headers that describe it.

Rounds: ceil(log2(P)).
Bytes sent per rank: one header of 32 bytes for each other rank.

The exchange precedes the first `auto` call of a workload (see communicator/selection.py). It
gives all ranks the same input for the selection, and every rank detects a mismatch before
anything else is sent. A description of the call precedes a broadcast or reduce whose root is
not that of the last one: the messages of these do not reach all ranks.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from .. import wire
from ..costs.workload import Workload
from ..errors import MismatchError
from ..stream import Stream
from .allgather import allgather_messages
from .base import AGREEMENT, Collective, register
from .checks import Shape

if TYPE_CHECKING:
    from ..quantize import Quantizer
    from ..transport import Message
    from .call import Call


def agree(call: Call, x: Stream) -> Workload | MismatchError:
    """Return the workload, or the mismatch between ranks: the same value on every rank."""
    message = call.header_only(x, round=quantizer_code(call.quantizer))
    return resolve(call, x, allgather_messages(call, message))


def quantizer_code(quantizer: Quantizer | None) -> int:
    """Return a hash of the quantizer, the round of the messages."""
    return 0 if quantizer is None else 1 + zlib.crc32(repr(quantizer).encode()) % 255


def resolve(call: Call, x: Stream, messages: list[Message]) -> Workload | MismatchError:
    """Return the workload or the mismatch that the headers of all ranks describe."""
    if len({wire.Header.read(message).tag.round for message in messages}) > 1:
        return _different_quantizers(call, x, repr(call.quantizer).encode())
    return compare(call, x, messages)


def _different_quantizers(call: Call, x: Stream, text: bytes) -> MismatchError:
    """Exchange the quantizers as text, and return an error that names two of them."""
    texts = _allgather_text(call, x, text)
    rank = next(rank for rank, other in enumerate(texts) if other != texts[0])
    return call.different_quantizers(0, texts[0], rank, texts[rank])


def _allgather_text(call: Call, x: Stream, text: bytes) -> list[str]:
    message = call.header_only(x, np.frombuffer(text, np.uint8))
    texts = []
    for rank, received in enumerate(allgather_messages(call, message)):
        call.verify(received, rank)
        payload = wire.auxiliary(received, np.dtype(np.uint8)).tobytes()
        texts.append(payload.rstrip(b"\0").decode("utf-8", "replace"))
    return texts


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


def agree_on_root(call: Call, description: str) -> MismatchError | None:
    """Return the mismatch if ranks describe different calls: the same value on every rank.

    Args:
        call: The call.
        description: The collective, its root and, for a reduction, the operation and shape.
    """
    texts = _allgather_text(call, Stream(0, [], []), description.encode())
    for rank, text in enumerate(texts):
        if text != texts[0]:
            return MismatchError(
                f"{call.name(0)} is in {texts[0]}, but {call.name(rank)} is in {text}; all "
                f"ranks must make the same call with the same arguments"
            )
    return None


register(Collective(AGREEMENT, 0))
register(Collective("agree_root", 21))
