"""Codes of values by few bits; `reference` has the definition of each."""

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

MAX_NORM, L2_NORM, GIVEN_NORM = range(3)  # what the norm of a bucket is


def grid_nbytes(count: int, bucket: int, bits: int) -> int:
    """Four bytes a bucket, and the bits of all values."""
    return 4 * -(-count // bucket) + (count * bits + 7) // 8


def to_grid(
    values: Floats,
    bucket: int,
    levels: int,
    bits: int,
    norm: int = MAX_NORM,
    *,
    scale: float = 0.0,
    seed: int = 0,
    out: Bytes | None = None,
) -> Bytes:
    """Values at random on a grid of so many levels to each side of zero."""
    if out is None:
        out = buffer_pool.empty(grid_nbytes(values.size, bucket, bits), np.uint8)
    _core.to_grid(values, bucket, levels, bits, norm, scale, seed, out)
    return out


def from_grid(
    code: Bytes, count: int, bucket: int, levels: int, bits: int, out: Floats | None = None
) -> Floats:
    """The values that such a code stands for."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_grid(code, bucket, levels, bits, out)
    return out


def to_table(
    values: Floats,
    bucket: int,
    levels: Floats,
    bits: int,
    norm: int = L2_NORM,
    *,
    scale: float = 0.0,
    seed: int = 0,
    out: Bytes | None = None,
) -> Bytes:
    """Values at random on any levels, which ascend from 0 to 1: shares of the norm."""
    if out is None:
        out = buffer_pool.empty(grid_nbytes(values.size, bucket, bits), np.uint8)
    _core.to_table(values, bucket, levels, bits, norm, scale, seed, out)
    return out


def from_table(
    code: Bytes,
    count: int,
    bucket: int,
    levels: Floats,
    bits: int,
    out: Floats | None = None,
) -> Floats:
    """The values that such a code stands for."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_table(code, bucket, levels, bits, out)
    return out


def to_natural(values: Floats, *, seed: int = 0, out: Bytes | None = None) -> Bytes:
    """Each value at random to a power of two next to it: a sign and an exponent."""
    if out is None:
        out = buffer_pool.empty(values.size + -(-values.size // 8), np.uint8)
    _core.to_natural(values, seed, out)
    return out


def from_natural(code: Bytes, count: int, out: Floats | None = None) -> Floats:
    """The values that such a code stands for."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_natural(code, out)
    return out


def moments(values: Floats) -> tuple[float, float, float, int]:
    """The largest magnitude, sum, sum of squares and number of what is not NaN."""
    return _core.moments(values)
