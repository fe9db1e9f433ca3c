"""Codes of values by few bits; `reference` has the definition of each."""

import numpy as np
from numpy.typing import NDArray

from .. import memory
from . import _core

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

LARGEST, LENGTH, GIVEN = range(3)  # what the norm of a bucket is


def grid_nbytes(count: int, bucket: int, bits: int) -> int:
    """Four bytes a bucket, and the bits of all values."""
    return 4 * -(-count // bucket) + (count * bits + 7) // 8


def to_grid(
    values: Floats,
    bucket: int,
    levels: int,
    bits: int,
    norm: int = LARGEST,
    *,
    scale: float = 0.0,
    seed: int = 0,
    out: Bytes | None = None,
) -> Bytes:
    """Values at random on a grid of so many levels to each side of zero."""
    if out is None:
        out = memory.empty(grid_nbytes(values.size, bucket, bits), np.uint8)
    _core.to_grid(values, bucket, levels, bits, norm, scale, seed, out)
    return out


def from_grid(
    code: Bytes, count: int, bucket: int, levels: int, bits: int, out: Floats | None = None
) -> Floats:
    """The values that such a code stands for."""
    if out is None:
        out = memory.empty(count, np.float32)
    _core.from_grid(code, bucket, levels, bits, out)
    return out
