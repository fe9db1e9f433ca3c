"""Selections of the largest values: typed entrances to the compiled loops.

Magnitudes are ordered by the bits of |v|: NaN above infinity above all numbers. Of equal
ones the lowest index is taken; entries ascend. `out` may be `residual`; squares are
summed in one order (see `reference`) on every instruction set.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core
from .reduction import Entries, Float, Indices, Values

SHARE = 32  # at_least first has room for one entry in so many values
LEAST = 1 << 12


def top_k(values: Values[Float], k: int) -> Entries[Float]:
    """The k entries of largest magnitude, or all; of equal ones the first."""
    k = min(k, values.size)
    indices, found = _room(_core.top_k_room(values.size, k), values.dtype)
    _core.top_k(values, k, indices, found)
    return indices[:k], found[:k]


def top_k_with_residual(
    residual: Values[Float], gradient: Values[Float], k: int, out: Values[Float]
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `top_k` of out, which is zeroed there; its squares are from before."""
    k = min(k, out.size)
    indices, found = _room(_core.top_k_room(out.size, k), out.dtype)
    squares = _core.owe_top_k(residual, gradient, k, out, indices, found)
    return indices[:k], found[:k], squares


def bucket_top_k(values: Values[Float], k: int, bucket: int) -> Entries[Float]:
    """`top_k` of every `bucket` consecutive values."""
    k, room = _bucket_room(values.size, k, bucket)
    indices, found = _room(room, values.dtype)
    _core.bucket_top_k(values, k, bucket, indices, found)
    return indices, found


def bucket_top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    bucket: int,
    out: Values[Float],
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `bucket_top_k` of out, which is zeroed there."""
    k, room = _bucket_room(out.size, k, bucket)
    indices, found = _room(room, out.dtype)
    squares = _core.owe_bucket_top_k(residual, gradient, k, bucket, out, indices, found)
    return indices, found, squares


def at_least(values: Values[Float], threshold: float) -> Entries[Float]:
    """The entries with |v| >= threshold, NaN among them."""
    indices, found = _room(values.size // SHARE + LEAST, values.dtype)
    count = _core.at_least(values, threshold, indices, found)
    if count > indices.size:
        indices, found = _room(count, values.dtype)
        _core.at_least(values, threshold, indices, found)
    return indices[:count], found[:count]


def at_least_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    threshold: float,
    out: Values[Float],
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `at_least` of out, which stays whole."""
    indices, found = _room(out.size // SHARE + LEAST, out.dtype)
    count, squares = _core.owe_at_least(residual, gradient, threshold, out, indices, found)
    if count > indices.size:
        indices, found = at_least(out, threshold)
    return indices[:count], found[:count], squares


def add_residual(
    residual: Values[Float], gradient: Values[Float], out: Values[Float]
) -> float:
    """Write residual + gradient; returns the sum of its squares."""
    return _core.owe(residual, gradient, out)


def block_squared_norms(values: Values[Float], block: int) -> NDArray[np.float64]:
    """Sums of squares of every `block` values, the last of them maybe of fewer."""
    out = buffer_pool.empty(-(-values.size // block), np.float64)
    _core.block_squares(values, block, out)
    return out


def _room(size: int, dtype: np.dtype[Any]) -> tuple[Indices, NDArray[Any]]:
    return buffer_pool.empty(size, np.uint32), buffer_pool.empty(size, dtype)


def _bucket_room(size: int, k: int, bucket: int) -> tuple[int, int]:
    """What a full bucket gives, and all of them."""
    k = min(k, bucket)
    return k, size // bucket * k + min(k, size % bucket)
