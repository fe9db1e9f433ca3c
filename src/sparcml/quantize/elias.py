"""Elias coding of levels: the code that the bounds of QSGD are for.

It is slower than packing levels to a fixed width, and pays on slow links only. The code opens with
8 bytes: 1 as u32 and the number of bytes of the encoded levels as u32. The norms and the encoded
levels follow. If packed levels are no longer, both numbers are 0 and the packed code follows.

Encoded levels open with 8 bytes: the form as u32 (0 dense, 1 sparse) and the number of nonzero
levels of the sparse form as u32; then follow the words of `cpp/kernels/elias/elias.h`.

References: Elias: Universal codeword sets, IEEE Transactions on Information Theory 1975; Alistarh,
Grubic, Li, Tomioka, Vojnovic: QSGD, NeurIPS 2017 (Code_s and Code'_s).
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
    Norms = NDArray[np.float32]

FRAME = struct.Struct("<II")  # whether levels are encoded, their bytes
LEVELS = struct.Struct("<II")  # form, nonzero levels
ENCODED = 1


def encode_levels(levels: Levels) -> Bytes:
    """Return the shorter of the dense and the sparse code of at least one level."""
    plan = kernels.elias_plan(levels)
    sparse = plan.sparse_bits < plan.dense_bits and plan.nonzeros < 2**32
    bits = plan.sparse_bits if sparse else plan.dense_bits
    head = LEVELS.pack(sparse, plan.nonzeros if sparse else 0)
    words = kernels.elias_encode(levels, sparse, bits)
    return buffer_pool.concatenate((np.frombuffer(head, np.uint8), words))


def decode_levels(data: Bytes, count: int) -> Levels:
    """Return `count` levels.

    Raises:
        ValueError: If the bytes are not a code of `count` levels.
    """
    if data.size < LEVELS.size:
        raise ValueError(f"elias: code ends within its first {LEVELS.size} bytes")
    sparse, nonzeros = LEVELS.unpack(data[: LEVELS.size].tobytes())
    if sparse > 1 or (nonzeros and not sparse):
        raise ValueError(f"elias: form {sparse} with {nonzeros} nonzero levels is unknown")
    return kernels.elias_decode(data[LEVELS.size :], count, bool(sparse), nonzeros)


def write(norms: Norms, levels: Levels, out: Bytes) -> int | None:
    """Write norms and levels to `out` and return the bytes used.

    Returns None if packed levels, for which `out` has room, are no longer.
    """
    at = FRAME.size + norms.nbytes
    data = encode_levels(levels) if levels.size else levels.view(np.uint8)
    if at + data.size >= out.size or data.size >= 2**32:
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
        raise ValueError(f"elias: code ends within its first {FRAME.size} bytes")
    form, level_bytes = FRAME.unpack(head[: FRAME.size].tobytes())
    total = FRAME.size + norm_bytes + level_bytes
    if form == ENCODED and total < maximum:
        return int(total)
    if (form, level_bytes) == (0, 0):
        return maximum
    raise ValueError(f"elias: form {form} with {level_bytes} bytes of levels is unknown")


def is_encoded(data: Bytes) -> bool:
    """Return whether a code of valid length holds encoded levels."""
    return bool(data[0])


def read(data: Bytes, norm_bytes: int, count: int) -> tuple[Norms, Levels]:
    """Return norms and levels.

    Raises:
        ValueError: If the levels are not a code of `count` levels.
    """
    at = FRAME.size + norm_bytes
    return data[FRAME.size : at].view(np.float32), decode_levels(data[at:], count)
