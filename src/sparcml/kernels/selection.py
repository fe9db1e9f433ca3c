"""Selection of the values with the largest magnitude.

Magnitudes are ordered by the bits of |v|: NaN above infinity, infinity above all numbers.
Among equal magnitudes the lowest index comes first. The selected entries ascend.

The functions with a residual write scale * residual + gradient, the corrected gradient, to `out`,
which may be `residual`, and return its squared norm. All instruction sets sum the squares
in the same order, defined in `reference.selection`. With a `Velocity` they add its term in place of
the gradient and write the new momentum, in the same pass.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core
from .reduction import Entries, Float, Indices, Values, Velocity

# The number of values above a threshold is unknown: the first buffers hold one in 32.
EXPECTED_SHARE = 32
MIN_CAPACITY = 1 << 12


def top_k(values: Values[Float], k: int) -> Entries[Float]:
    """Return the k entries of largest magnitude, or all if there are fewer."""
    k = min(k, values.size)
    indices, selected = _buffers(_core.top_k_capacity(values.size, k), values.dtype)
    _core.top_k(values, k, indices, selected)
    return indices[:k], selected[:k]


def top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `top_k` of the corrected gradient and its squared norm.

    The selected entries are set to zero in `out`, after the squared norm is taken.
    """
    k = min(k, out.size)
    indices, selected = _buffers(_core.top_k_capacity(out.size, k), out.dtype)
    squared_norm = _core.top_k_with_residual(
        residual, gradient, k, out, indices, selected, scale, _arguments(velocity)
    )
    return indices[:k], selected[:k], squared_norm


def bucket_top_k(values: Values[Float], k: int, bucket: int) -> Entries[Float]:
    """Return `top_k` of every `bucket` consecutive values."""
    k, capacity = _bucket_capacity(values.size, k, bucket)
    indices, selected = _buffers(capacity, values.dtype)
    _core.bucket_top_k(values, k, bucket, indices, selected)
    return indices, selected


def bucket_top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    bucket: int,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `bucket_top_k` of the corrected gradient and its squared norm.

    The selected entries are set to zero in `out`, after the squared norm is taken.
    """
    k, capacity = _bucket_capacity(out.size, k, bucket)
    indices, selected = _buffers(capacity, out.dtype)
    squared_norm = _core.bucket_top_k_with_residual(
        residual, gradient, k, bucket, out, indices, selected, scale, _arguments(velocity)
    )
    return indices, selected, squared_norm


def at_least(values: Values[Float], threshold: float) -> Entries[Float]:
    """Return the entries with |v| >= threshold, including every NaN."""
    indices, selected = _buffers(values.size // EXPECTED_SHARE + MIN_CAPACITY, values.dtype)
    count = _core.at_least(values, threshold, indices, selected)
    if count > indices.size:
        indices, selected = _buffers(count, values.dtype)
        _core.at_least(values, threshold, indices, selected)
    return indices[:count], selected[:count]


def at_least_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    threshold: float,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `at_least` of the corrected gradient and its squared norm.

    Unlike `top_k_with_residual`, this leaves the selected entries in `out`.
    """
    indices, selected = _buffers(out.size // EXPECTED_SHARE + MIN_CAPACITY, out.dtype)
    count, squared_norm = _core.at_least_with_residual(
        residual, gradient, threshold, out, indices, selected, scale, _arguments(velocity)
    )
    if count > indices.size:
        indices, selected = at_least(out, threshold)
    return indices[:count], selected[:count], squared_norm


def add_residual(
    residual: Values[Float],
    gradient: Values[Float],
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> float:
    """Write scale * residual + gradient to `out` and return its squared norm."""
    return _core.add_residual(residual, gradient, out, scale, _arguments(velocity))


def block_squared_norms(values: Values[Float], block: int) -> NDArray[np.float64]:
    """Return the squared norm of every `block` values; the last block may be shorter."""
    out = buffer_pool.empty(-(-values.size // block), np.float64)
    _core.block_squared_norms(values, block, out)
    return out


def _arguments(velocity: Velocity | None) -> Any:
    return None if velocity is None else velocity.arguments()


def _buffers(size: int, dtype: np.dtype[Any]) -> tuple[Indices, NDArray[Any]]:
    return buffer_pool.empty(size, np.uint32), buffer_pool.empty(size, dtype)


def _bucket_capacity(size: int, k: int, bucket: int) -> tuple[int, int]:
    """Return the number of entries selected in a full bucket and in all buckets."""
    k = min(k, bucket)
    return k, size // bucket * k + min(k, size % bucket)
