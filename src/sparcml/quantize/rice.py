"""Rice coding of levels that are mostly zero: positions as gaps, level by level.

At 2 bits most levels are zero, and the positions of the others in a Golomb-Rice code take within
3 % of their entropy. With L the largest magnitude, encoded levels are: L as u32 and 0 as u32; for
each m from 1 to L the positions of the entries with a magnitude of at least m, counted among those
of at least m - 1; and a bit plane of the signs of all nonzero levels, 1 for negative. Positions are
their number as u32, their bytes as u32, and an index section of the wire format `gap`.

Reference: Rice, Plaunt: Adaptive variable-length coding, IEEE Transactions on Communications 1971.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Levels = NDArray[np.int8]

PAIR = struct.Struct("<II")
MAX_LEVEL = 127  # -128 is NaN


def encode_levels(levels: Levels) -> Bytes | None:
    """Return the code of at least one level; None if one is NaN."""
    nonzero = np.flatnonzero(levels).astype(np.uint32)
    chosen = levels[nonzero]
    magnitudes = np.abs(chosen).view(np.uint8)  # 128 for NaN
    largest = int(magnitudes.max(initial=0))
    if largest > MAX_LEVEL:
        return None
    parts = [_pair(largest, 0)]
    positions = nonzero
    for m in range(1, largest + 1):
        if m > 1:
            positions = np.flatnonzero(magnitudes >= m).astype(np.uint32)
            magnitudes = magnitudes[positions]
        section = kernels.gap_encode(positions)
        parts += [_pair(positions.size, section.size), section]
    return buffer_pool.concatenate((*parts, np.packbits(chosen < 0, bitorder="little")))


def decode_levels(data: Bytes, count: int) -> Levels:
    """Return `count` levels.

    Raises:
        ValueError: If the bytes are not a code of `count` levels.
    """
    largest, zero = _read_pair(data, 0)
    if largest > MAX_LEVEL or zero:
        raise ValueError(f"rice: the largest level must be at most {MAX_LEVEL}")
    levels = np.zeros(count, np.int8)
    nonzero = among = np.empty(0, np.uint32)
    at = PAIR.size
    for m in range(1, largest + 1):
        size = count if m == 1 else among.size
        number, nbytes = _read_pair(data, at)
        section = data[at + PAIR.size : at + PAIR.size + nbytes]
        if not number <= size or section.size < nbytes:
            raise ValueError(
                f"rice: {data.size} bytes cannot hold {number} of {size} levels"
            )
        positions = kernels.gap_decode(section.copy(), number, size)
        among = positions if m == 1 else among[positions]
        nonzero = among if m == 1 else nonzero
        levels[among] = m
        at += PAIR.size + nbytes
    signs = data[at:]
    if signs.size != -(-nonzero.size // 8):
        raise ValueError(f"rice: {signs.size} bytes cannot hold {nonzero.size} signs")
    if signs.size and signs[-1] >> (nonzero.size % 8 or 8):
        raise ValueError("rice: the last byte of the signs must be padded with zeros")
    negative = np.unpackbits(signs, count=nonzero.size, bitorder="little").astype(bool)
    levels[nonzero[negative]] *= -1
    return levels


def _pair(first: int, second: int) -> Bytes:
    return np.frombuffer(PAIR.pack(first, second), np.uint8)


def _read_pair(data: Bytes, at: int) -> tuple[int, int]:
    if data.size < at + PAIR.size:
        raise ValueError(f"rice: code ends within {PAIR.size} bytes from {at}")
    first, second = PAIR.unpack(data[at : at + PAIR.size].tobytes())
    return first, second
