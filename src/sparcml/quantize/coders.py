"""Coders of levels: shorter codes than packing, slower, for slow links.

A code opens with 8 bytes: 1 as u32 and the number of bytes of the encoded levels as u32. The norms
and the encoded levels follow. If packed levels are no longer, both numbers are 0 and the packed
code follows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

import numpy as np

from . import elias, rice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Levels = NDArray[np.int8]
    Norms = NDArray[np.float32]

FRAME = struct.Struct("<II")  # whether levels are encoded, their bytes
ENCODED = 1


class Coder(Protocol):
    """A module with these two functions."""

    def encode_levels(self, levels: Levels) -> Bytes | None:
        """Return the code of at least one level; None if it has none."""

    def decode_levels(self, data: Bytes, count: int) -> Levels:
        """Return `count` levels, or raise a ValueError."""


CODERS: dict[str, Coder] = {"elias": elias, "rice": rice}
NAMES = (None, *CODERS)  # positions are wire numbers


def write(coder: str, norms: Norms, levels: Levels, out: Bytes) -> int | None:
    """Write norms and levels to `out` and return the bytes used.

    Returns None if packed levels, for which `out` has room, are no longer.
    """
    at = FRAME.size + norms.nbytes
    data = CODERS[coder].encode_levels(levels) if levels.size else levels.view(np.uint8)
    if data is None or at + data.size >= out.size or data.size >= 2**32:
        out[: FRAME.size] = 0
        return None
    out[: FRAME.size] = np.frombuffer(FRAME.pack(ENCODED, data.size), np.uint8)
    out[FRAME.size : at] = norms.view(np.uint8)
    out[at : at + data.size] = data
    return at + data.size


def nbytes(head: Bytes, norm_bytes: int, maximum: int) -> int:
    """Return the bytes of the code that begins with `head`, at most `maximum`.

    Raises:
        ValueError: If no code begins with these bytes.
    """
    if head.size < FRAME.size:
        raise ValueError(f"coder: code ends within its first {FRAME.size} bytes")
    form, level_bytes = FRAME.unpack(head[: FRAME.size].tobytes())
    total = FRAME.size + norm_bytes + level_bytes
    if form == ENCODED and total < maximum:
        return int(total)
    if (form, level_bytes) == (0, 0):
        return maximum
    raise ValueError(f"coder: form {form} with {level_bytes} bytes of levels is unknown")


def is_encoded(data: Bytes) -> bool:
    """Return whether a code of valid length holds encoded levels."""
    return bool(data[0])


def read(coder: str, data: Bytes, norm_bytes: int, count: int) -> tuple[Norms, Levels]:
    """Return norms and levels.

    Raises:
        ValueError: If the levels are not a code of `count` levels.
    """
    at = FRAME.size + norm_bytes
    levels = CODERS[coder].decode_levels(data[at:], count)
    return data[FRAME.size : at].view(np.float32), levels
