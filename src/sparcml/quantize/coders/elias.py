"""Elias's omega code: what QSGD's bounds on bits are for.

A code is 8 bytes, of which the first says whether it is sparse (1) or dense (0) and the last four
how many levels a sparse one holds, then the words of `cpp/kernels/elias/elias.h`.

References: Elias: Universal codeword sets, IEEE Transactions on Information Theory 1975; Alistarh,
Grubic, Li, Tomioka, Vojnovic: QSGD, NeurIPS 2017 (Code_s and Code'_s).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from ... import buffer_pool, kernels
from .base import Coder

if TYPE_CHECKING:
    from .base import Bytes, Levels

HEAD = struct.Struct("<II")


class Elias(Coder):
    """The shorter of the dense and the sparse form."""

    def encode(self, levels: Levels) -> Bytes:
        """Its form, then its words."""
        plan = kernels.elias_plan(levels)
        sparse = plan.sparse_bits < plan.dense_bits and plan.nonzeros < 2**32
        bits = plan.sparse_bits if sparse else plan.dense_bits
        head = HEAD.pack(sparse, plan.nonzeros if sparse else 0)
        words = kernels.elias_encode(levels, sparse, bits)
        return buffer_pool.concatenate((np.frombuffer(head, np.uint8), words))

    def decode(self, data: Bytes, count: int) -> Levels:
        """Every word, checked."""
        if data.size < HEAD.size:
            raise ValueError("elias: it ends within its head")
        sparse, nonzeros = HEAD.unpack(data[: HEAD.size].tobytes())
        if sparse > 1 or (nonzeros and not sparse):
            raise ValueError(f"elias: form {sparse} with {nonzeros} levels is unknown")
        return kernels.elias_decode(data[HEAD.size :], count, bool(sparse), nonzeros)
