"""Elias coding of levels: the code that the bounds of QSGD are for.

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

LEVELS = struct.Struct("<II")  # form, nonzero levels


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
