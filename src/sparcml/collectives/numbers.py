"""Python numbers, such as a loss or a flag: their messages, and their reduction.

Rounds: ceil(log2(P)).
Bytes sent per rank: one message of 48 bytes for each other rank.

A reduction gathers the numbers of all ranks as in allgather, and every rank reduces them in
rank order. So all ranks get the same bits, integers are exact whatever the size of their sum,
and ranks may mix integers and floats, as in Python.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import kernels, wire
from ..errors import WireError
from ..stream import MEAN, Stream
from .base import Collective, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Message
    from .call import Call

Number: TypeAlias = bool | int | float

LAYOUTS = {bool: "<qq", int: "<qq", float: "<qd"}  # the type, and the value
TYPES = tuple(LAYOUTS)
NBYTES = 16
DESCRIBED = Stream.unchecked(1, None, np.zeros(1))  # by the header of a number


def is_number(x: Any) -> bool:
    """Return whether x is a Python or NumPy boolean, integer or float."""
    return isinstance(x, (int, float, np.bool_, np.integer, np.floating))


def as_number(function: str, x: Any) -> Number:
    """Return a number as Python's bool, int or float.

    Raises:
        OverflowError: If it is an integer that 64 bits do not hold.
        TypeError: If it is a float of more than 64 bits.
    """
    number = x.item() if isinstance(x, np.generic) else x
    if isinstance(number, bool):
        return number
    if not isinstance(number, (int, float)):
        raise TypeError(
            f"{function}: numbers must be bool, int or float, got {type(x).__name__}; convert "
            f"it with float()"
        )
    if isinstance(number, float):
        return float(number)
    if not -(2**63) <= number < 2**63:
        raise OverflowError(
            f"{function}: integers must be within 64 bits, got {number}; convert it with float()"
        )
    return int(number)


def fold(numbers: Sequence[Number], op: str) -> Number:
    """Reduce numbers in their order: integers as Python does, floats as streams do.

    A sum or product of booleans is an integer, a minimum or maximum a boolean, and a mean
    always a float.
    """
    if op == MEAN:
        return fold(numbers, "sum") / len(numbers)
    if any(isinstance(number, float) for number in numbers):
        total = np.array([numbers[0]], np.float64)
        total[np.isnan(total)] = np.nan  # the canonical one
        for number in numbers[1:]:
            total = kernels.combine_dense(op, total, np.array([number], np.float64))
        return float(total[0])
    if op in ("min", "max"):
        return min(numbers) if op == "min" else max(numbers)
    return sum(numbers) if op == "sum" else math.prod(numbers)


def encode(call: Call, x: Stream | Number, round: int) -> Message:
    """Encode a stream, or a number as the auxiliary payload of a header-only message."""
    if isinstance(x, Stream):
        # Receivers may not know its shape.
        return call.encode(x, round, bounded=True)[0]
    kind = next(t for t in TYPES if isinstance(x, t))
    payload = struct.pack(LAYOUTS[kind], TYPES.index(kind), x)
    return call.header_only(DESCRIBED, np.frombuffer(payload, np.uint8), round)


def decode(call: Call, message: Message, source: int, round: int) -> Stream | Number:
    """Decode the stream or the number of a message of this call and round."""
    with call.decoding_from(source):
        is_stream = wire.Header.read(message).value_format != wire.ABSENT
    if is_stream:
        return call.decode(message, source, round)
    with call.decoding_from(source):
        call.verify(message, source)
        payload = wire.auxiliary(message, np.dtype(np.uint8)).tobytes()
        kind = int.from_bytes(payload[:8], "little")
        if len(payload) != NBYTES or kind >= len(TYPES):
            raise WireError("expected a number as auxiliary payload")
        number: Number = TYPES[kind](struct.unpack(LAYOUTS[TYPES[kind]], payload)[1])
        return number


register(Collective("numbers", 19))
