"""Random numbers by seed and position, defined in NumPy as in `cpp/kernels/random.h`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LANES = 8  # words generated at once
FRACTION = 24  # bits of a random fraction
MASK = 2**64 - 1


def _scramble(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def words(seed: int, first: int, count: int) -> NDArray[np.uint32]:
    """Return `count` words of 32 bits, starting at position `first`."""
    if (first + count - 1) >> 32 > first >> 32:  # the words after 2^32 have another key
        split = (1 << 32) - first % (1 << 32)
        parts = words(seed, first, split), words(seed, first + split, count - split)
        return np.concatenate(parts)
    key = _scramble((_scramble(seed) + (first >> 32)) & MASK)
    k0, k1 = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    x: NDArray[np.uint32] = np.arange(count, dtype=np.uint32)
    x = x + np.uint32(first & 0xFFFFFFFF) + k0
    x = (x ^ x >> np.uint32(17)) * np.uint32(0xED5AD4BB)
    x = ((x ^ x >> np.uint32(11)) + k1) * np.uint32(0xAC4C1B51)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x31848BAB)
    return x ^ x >> np.uint32(14)


def fractions(seed: int, first: int, count: int) -> NDArray[np.int32]:
    """Return `count` random integers of 24 bits: the highest bits of each word."""
    return (words(seed, first, count) >> np.uint32(32 - FRACTION)).astype(np.int32)
