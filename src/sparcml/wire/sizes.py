"""How many bytes a stream takes on the wire: bounds for any indices, and a likely value.

Collectives declare entries; these functions turn them into bytes, for the tests that
count, for `explain` and `auto`, and for the simulator.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .header import SIZE
from .indices import bitmap_nbytes, padded


def max_nbytes(nnz: int, blocks: int, entry_bytes: int) -> int:
    """No message of at most nnz entries is larger."""
    sparse = nnz * entry_bytes + min(padded(4 * nnz), bitmap_nbytes(blocks))
    return SIZE + min(sparse, blocks * entry_bytes)


def min_nbytes(nnz: int, blocks: int, entry_bytes: int) -> int:
    """No message of at least nnz entries is smaller: neighbours cost a bit each."""
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
    share = min(1.0, nnz / blocks)
    bits = (
        -math.log2(share) - (1 - share) * math.log2(1 - share) / share if share < 1 else 0
    )
    return min(nnz * bits / 8 + 16, 4 * nnz, bitmap_nbytes(blocks))


def auxiliary_nbytes(count: int, each: int) -> int:
    """A bare header that carries so many numbers of `each` bytes."""
    return SIZE + padded(count * each)
