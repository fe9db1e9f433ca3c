"""Selection of the values with the largest magnitude, defined in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels.reduction import Entries, Float, Indices, Values, Velocity
from tests.kernels.reference import reduction

SQUARES_BLOCK = 2048  # squares are summed in blocks of this size, then the blocks
LANES = 8


def magnitude_keys(values: Values[Float]) -> NDArray[Any]:
    """Return the bits of |v|, which order magnitudes: NaN, then infinity, then numbers."""
    bits: NDArray[Any] = values.view(f"u{values.itemsize}")
    magnitude = bits.dtype.type(np.iinfo(bits.dtype).max >> 1)
    masked: NDArray[Any] = bits & magnitude
    return masked


def top_k(values: Values[Float], k: int) -> Entries[Float]:
    """Return the k entries of largest magnitude, ascending; among equal ones the first."""
    key = magnitude_keys(values)
    k = min(k, key.size)
    if k == 0:
        return np.empty(0, np.uint32), values[:0]
    kth = np.partition(key, key.size - k)[key.size - k]
    chosen = key > kth
    ties = np.flatnonzero(key == kth)
    chosen[ties[: k - np.count_nonzero(chosen)]] = True
    indices = np.flatnonzero(chosen).astype(np.uint32)
    return indices, values[indices]


def bucket_top_k(values: Values[Float], k: int, bucket: int) -> Entries[Float]:
    """Return `top_k` of every `bucket` consecutive values; the last bucket may be shorter."""
    buckets = -(-values.size // bucket)
    key = np.full(buckets * bucket, -1)  # pads the last bucket, below all magnitudes
    key[: values.size] = magnitude_keys(values)
    order = np.argsort(-key.reshape(buckets, bucket), axis=1, kind="stable")
    positions = order[:, :k] + bucket * np.arange(buckets)[:, None]
    indices = np.sort(positions[positions < values.size]).astype(np.uint32)
    return indices, values[indices]


def at_least(values: Values[Float], threshold: float) -> Entries[Float]:
    """Return the entries with |v| >= threshold, including every NaN."""
    rounded = np.array([threshold], values.dtype)
    # A zero is below every positive threshold, also one that rounds to zero.
    lowest = max(magnitude_keys(rounded)[0], int(threshold > 0))
    indices = np.flatnonzero(magnitude_keys(values) >= lowest).astype(np.uint32)
    return indices, values[indices]


def block_squared_norms(values: Values[Float], block: int) -> NDArray[np.float64]:
    """Return the squared norm of every `block` values; the last block may be shorter.

    Value i of a block is added to lane i mod 8, in order; then the lanes are added by a
    tree. A NaN is the canonical one.
    """
    blocks = -(-values.size // block)
    rows = -(-block // LANES)
    padded = np.zeros((blocks, rows * LANES))
    with np.errstate(all="ignore"):
        squares = np.zeros(blocks * block)
        squares[: values.size] = np.square(values.astype(np.float64))
        padded[:, :block] = squares.reshape(blocks, block)
        lanes = np.zeros((blocks, LANES))
        for row in range(rows):
            lanes += padded[:, row * LANES : (row + 1) * LANES]
        for half in (4, 2, 1):
            lanes = lanes[:, :half] + lanes[:, half : 2 * half]
    return np.where(np.isnan(lanes[:, 0]), np.nan, lanes[:, 0])


def add_residual(
    residual: Values[Float],
    gradient: Values[Float],
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> float:
    """Write scale * residual + gradient to `out`, and return its squared norm by blocks.

    With a velocity, its term replaces the gradient, and its `out` receives the new momentum.
    """
    if velocity is not None:
        m, u, nesterov = velocity.momentum, velocity.u, velocity.nesterov
        velocity.out[:], gradient = reduction.add_momentum(
            m, u, gradient, nesterov=nesterov
        )
    with np.errstate(all="ignore"):
        scaled = out.dtype.type(scale) * residual
    reduction.combine_dense("sum", scaled, gradient, out)
    total = 0.0
    for part in block_squared_norms(out, SQUARES_BLOCK).tolist():
        total += part
    return total


def top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `top_k` of residual + gradient, zeroed in `out`, and its squared norm before."""
    squared_norm = add_residual(residual, gradient, out, scale, velocity)
    indices, values = top_k(out, k)
    out[indices] = 0
    return indices, values, squared_norm


def bucket_top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    bucket: int,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `bucket_top_k` of residual + gradient, zeroed in `out`, and its squared norm."""
    squared_norm = add_residual(residual, gradient, out, scale, velocity)
    indices, values = bucket_top_k(out, k, bucket)
    out[indices] = 0
    return indices, values, squared_norm


def at_least_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    threshold: float,
    out: Values[Float],
    scale: float = 1.0,
    velocity: Velocity | None = None,
) -> tuple[Indices, Values[Float], float]:
    """Return `at_least` of residual + gradient, left in `out`, and its squared norm."""
    squared_norm = add_residual(residual, gradient, out, scale, velocity)
    indices, values = at_least(out, threshold)
    return indices, values, squared_norm
