"""Number of bytes of a message: bounds for any indices, and an expected value.

Collectives declare entries; these functions convert them to bytes for `explain`, `auto`, the
simulator and the tests that count.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .header import SIZE


def padded(nbytes: int) -> int:
    """Return nbytes rounded up to a multiple of 8, which aligns the values."""
    return (nbytes + 7) & ~7


def bitmap_nbytes(blocks: int) -> int:
    """Return the bytes of a bitmap: one bit per block, in words of 8 bytes."""
    return (blocks + 63) // 64 * 8


def max_nbytes(nnz: int, blocks: int, entry_bytes: int) -> int:
    """Return an upper bound on the bytes of a message of at most nnz entries."""
    sparse = nnz * entry_bytes + min(padded(4 * nnz), bitmap_nbytes(blocks))
    return SIZE + min(sparse, blocks * entry_bytes)


def min_nbytes(nnz: int, blocks: int, entry_bytes: int) -> int:
    """Return a lower bound for at least nnz entries; adjacent indices cost one bit each."""
    index = 8 + padded((nnz + 7) // 8) if nnz else 0
    sparse = nnz * entry_bytes + min(index, padded(4 * nnz), bitmap_nbytes(blocks))
    return SIZE + min(sparse, blocks * entry_bytes)


@lru_cache(maxsize=1024)  # a long vector has thousands of segments, of one or two sizes
def expected_nbytes(nnz: float, blocks: int, entry_bytes: float) -> float:
    """Return the expected size of a message with nnz entries at random indices."""
    if nnz <= 0 or blocks == 0:
        return SIZE
    sparse = nnz * entry_bytes + expected_index_nbytes(nnz, blocks)
    return SIZE + min(sparse, blocks * entry_bytes)


def expected_index_nbytes(nnz: float, blocks: int) -> float:
    """Return the expected size of nnz random indices: gaps are coded near their entropy."""
    density = min(1.0, nnz / blocks)
    bits = (
        -math.log2(density) - (1 - density) * math.log2(1 - density) / density
        if density < 1
        else 0
    )
    return min(nnz * bits / 8 + 16, 4 * nnz, bitmap_nbytes(blocks))


def auxiliary_nbytes(count: int, each: int) -> int:
    """Return the bytes of a header-only message with `count` auxiliary items of `each` bytes."""
    return SIZE + padded(count * each)
