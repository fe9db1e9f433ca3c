"""Coders of levels: shorter codes than packing, slower, for slow links.

A code opens with 8 bytes: 1 as u32 and the number of bytes of the encoded levels as u32. The norms
and the encoded levels follow. If packed levels are no longer, both numbers are 0 and the packed
code follows.

Elias is the code that the bounds of QSGD are for. Encoded levels open with 8 bytes: the form as u32
(0 dense, 1 sparse) and the number of nonzero levels of the sparse form as u32; then follow the
words of `cpp/kernels/elias/elias.h`.

Rice is for levels that are mostly zero. At 2 bits most are, and the positions of the others in a
Golomb-Rice code take within 3 % of their entropy. With L the largest magnitude, encoded levels are:
L as u32 and 0 as u32; for each m from 1 to L the positions of the entries with a magnitude of at
least m, counted among those of at least m - 1; and a bit plane of the signs of all nonzero levels,
1 for negative. Positions are their number as u32, their bytes as u32, and an index section of the
wire format `gap`.

References: Elias: Universal codeword sets, IEEE Transactions on Information Theory 1975; Alistarh,
Grubic, Li, Tomioka, Vojnovic: QSGD, NeurIPS 2017 (Code_s and Code'_s); Rice, Plaunt: Adaptive
variable-length coding, IEEE Transactions on Communications 1971.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import buffer_pool, kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Levels = NDArray[np.int8]
    Norms = NDArray[np.float32]

PAIR = struct.Struct("<II")
ENCODED = 1  # the first number of a code
MAX_LEVEL = 127  # -128 is NaN


class Coder(NamedTuple):
    """A code of levels.

    Attributes:
        encode_levels: Returns the code of at least one level; None if it has none.
        decode_levels: Returns this number of levels, or raises a ValueError.
    """

    encode_levels: Callable[[Levels], Bytes | None]
    decode_levels: Callable[[Bytes, int], Levels]


def write(coder: str, norms: Norms, levels: Levels, out: Bytes) -> int | None:
    """Write norms and levels to `out` and return the bytes used.

    Returns None if packed levels, for which `out` has room, are no longer.
    """
    at = PAIR.size + norms.nbytes
    data = CODERS[coder].encode_levels(levels) if levels.size else levels.view(np.uint8)
    if data is None or at + data.size >= out.size or data.size >= 2**32:
        out[: PAIR.size] = 0
        return None
    out[: PAIR.size] = _pair(ENCODED, data.size)
    out[PAIR.size : at] = norms.view(np.uint8)
    out[at : at + data.size] = data
    return at + data.size


def nbytes(head: Bytes, norm_bytes: int, maximum: int) -> int:
    """Return the bytes of the code that begins with `head`, at most `maximum`.

    Raises:
        ValueError: If no code begins with these bytes.
    """
    form, level_bytes = _read_pair("coder", head)
    total = PAIR.size + norm_bytes + level_bytes
    if form == ENCODED and total < maximum:
        return total
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
    at = PAIR.size + norm_bytes
    levels = CODERS[coder].decode_levels(data[at:], count)
    return data[PAIR.size : at].view(np.float32), levels


def _pair(first: int, second: int) -> Bytes:
    return np.frombuffer(PAIR.pack(first, second), np.uint8)


def _read_pair(coder: str, data: Bytes, at: int = 0) -> tuple[int, int]:
    if data.size < at + PAIR.size:
        raise ValueError(f"{coder}: code ends within its first {at + PAIR.size} bytes")
    first, second = PAIR.unpack(data[at : at + PAIR.size].tobytes())
    return first, second


def _encode_elias(levels: Levels) -> Bytes:
    """Return the shorter of the dense and the sparse code."""
    plan = kernels.elias_plan(levels)
    sparse = plan.sparse_bits < plan.dense_bits and plan.nonzeros < 2**32
    bits = plan.sparse_bits if sparse else plan.dense_bits
    words = kernels.elias_encode(levels, sparse, bits)
    return buffer_pool.concatenate((_pair(sparse, plan.nonzeros if sparse else 0), words))


def _decode_elias(data: Bytes, count: int) -> Levels:
    sparse, nonzeros = _read_pair("elias", data)
    if sparse > 1 or (nonzeros and not sparse):
        raise ValueError(f"elias: form {sparse} with {nonzeros} nonzero levels is unknown")
    return kernels.elias_decode(data[PAIR.size :], count, bool(sparse), nonzeros)


def _encode_rice(levels: Levels) -> Bytes | None:
    """Return None if one of the levels is NaN."""
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


def _decode_rice(data: Bytes, count: int) -> Levels:
    largest, zero = _read_pair("rice", data)
    if largest > MAX_LEVEL or zero:
        raise ValueError(f"rice: the largest level must be at most {MAX_LEVEL}")
    levels = np.zeros(count, np.int8)
    nonzero = among = np.empty(0, np.uint32)
    at = PAIR.size
    for m in range(1, largest + 1):
        size = count if m == 1 else among.size
        number, section_bytes = _read_pair("rice", data, at)
        section = data[at + PAIR.size : at + PAIR.size + section_bytes]
        if not number <= size or section.size < section_bytes:
            raise ValueError(
                f"rice: {data.size} bytes cannot hold {number} of {size} levels"
            )
        positions = kernels.gap_decode(section.copy(), number, size)
        among = positions if m == 1 else among[positions]
        nonzero = among if m == 1 else nonzero
        levels[among] = m
        at += PAIR.size + section_bytes
    signs = data[at:]
    if signs.size != -(-nonzero.size // 8):
        raise ValueError(f"rice: {signs.size} bytes cannot hold {nonzero.size} signs")
    if signs.size and signs[-1] >> (nonzero.size % 8 or 8):
        raise ValueError("rice: the last byte of the signs must be padded with zeros")
    negative = np.unpackbits(signs, count=nonzero.size, bitorder="little").astype(bool)
    levels[nonzero[negative]] *= -1
    return levels


CODERS = {
    "elias": Coder(_encode_elias, _decode_elias),
    "rice": Coder(_encode_rice, _decode_rice),
}
NAMES = (None, *CODERS)  # positions are wire numbers
