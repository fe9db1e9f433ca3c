"""A quantizer's code with a coder: norms, then levels in as many bytes as it takes.

It opens with 8 bytes: 1 as u32 and the bytes of the coded levels as u32. Where packed levels are no
longer, both are 0 and the code without a coder follows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .base import Bytes, Coder, Levels

    Norms = NDArray[np.float32]

OPENING = struct.Struct("<II")
SIZE = OPENING.size
CODED = 1


def write(coder: Coder, norms: Norms, levels: Levels, out: Bytes) -> int | None:
    """Fill `out`, which has room for packed levels; None if those are no longer."""
    at = SIZE + norms.nbytes
    data = coder.encode(levels) if levels.size else levels.view(np.uint8)
    if at + data.size >= out.size or data.size >= 2**32:
        out[:SIZE] = 0
        return None
    out[:SIZE] = np.frombuffer(OPENING.pack(CODED, data.size), np.uint8)
    out[SIZE:at] = norms.view(np.uint8)
    out[at : at + data.size] = data
    return at + data.size


def length(opening: Bytes, norm_bytes: int, most: int) -> int:
    """Bytes of the code that begins with these, of at most `most`.

    Raises:
        ValueError: If no code does.
    """
    if opening.size < SIZE:
        raise ValueError(f"the code ends within its first {SIZE} bytes")
    coded, nbytes = OPENING.unpack(opening[:SIZE].tobytes())
    whole = SIZE + norm_bytes + nbytes
    if coded == CODED and whole < most:
        return int(whole)
    if (coded, nbytes) == (0, 0):
        return most
    raise ValueError(f"{nbytes} bytes of levels in form {coded}: impossible")


def is_coded(data: Bytes) -> bool:
    """Whether a coder wrote this, of the right length."""
    return bool(data[0])


def read(coder: Coder, data: Bytes, norm_bytes: int, count: int) -> tuple[Norms, Levels]:
    """Norms and levels.

    Raises:
        ValueError: If the levels are no code of so many.
    """
    at = SIZE + norm_bytes
    return data[SIZE:at].view(np.float32), coder.decode(data[at:], count)
