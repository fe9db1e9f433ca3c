"""Selections of the largest values, as `sparcml.kernels.select` has them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels.reduction import Entries, Float, Indices, Values
from sparcml.kernels.reference import reduction

SQUARES_BLOCK = 2048  # values whose squares are summed before they join the total
LANES = 8


def ranks(values: Values[Float]) -> NDArray[Any]:
    """The bits of |v|, which order magnitudes: NaN above infinity above all numbers."""
    bits: NDArray[Any] = values.view(f"u{values.itemsize}")
    magnitude = bits.dtype.type(np.iinfo(bits.dtype).max >> 1)
    masked: NDArray[Any] = bits & magnitude
    return masked


def top_k(values: Values[Float], k: int) -> Entries[Float]:
    """The k entries of largest magnitude, ascending; of equal ones the first."""
    rank = ranks(values)
    k = min(k, rank.size)
    if k == 0:
        return np.empty(0, np.uint32), values[:0]
    kth = np.partition(rank, rank.size - k)[rank.size - k]
    chosen = rank > kth
    ties = np.flatnonzero(rank == kth)
    chosen[ties[: k - np.count_nonzero(chosen)]] = True
    indices = np.flatnonzero(chosen).astype(np.uint32)
    return indices, values[indices]


def bucket_top_k(values: Values[Float], k: int, bucket: int) -> Entries[Float]:
    """`top_k` of every `bucket` consecutive values, the last of them maybe of fewer."""
    buckets = -(-values.size // bucket)
    rank = np.full(buckets * bucket, -1)  # below all: fills the last bucket
    rank[: values.size] = ranks(values)
    order = np.argsort(-rank.reshape(buckets, bucket), axis=1, kind="stable")
    places = order[:, :k] + bucket * np.arange(buckets)[:, None]
    indices = np.sort(places[places < values.size]).astype(np.uint32)
    return indices, values[indices]


def at_least(values: Values[Float], threshold: float) -> Entries[Float]:
    """The entries with |v| >= threshold, NaN among them."""
    rounded = np.array([threshold], values.dtype)
    least = max(
        ranks(rounded)[0], int(threshold > 0)
    )  # zeros do not reach it if it is not 0
    indices = np.flatnonzero(ranks(values) >= least).astype(np.uint32)
    return indices, values[indices]


def block_squared_norms(values: Values[Float], block: int) -> NDArray[np.float64]:
    """Sums of squares of every `block` values, the last of them maybe of fewer.

    Value i of a block is added to lane i mod 8, in order; then the lanes are halved.
    A NaN is the canonical one.
    """
    blocks = -(-values.size // block)
    rows = -(-block // LANES)
    padded = np.zeros((blocks, rows * LANES))
    with np.errstate(all="ignore"):
        whole = np.zeros(blocks * block)
        whole[: values.size] = np.square(values.astype(np.float64))
        padded[:, :block] = whole.reshape(blocks, block)
        lanes = np.zeros((blocks, LANES))
        for row in range(rows):
            lanes += padded[:, row * LANES : (row + 1) * LANES]
        for half in (4, 2, 1):
            lanes = lanes[:, :half] + lanes[:, half : 2 * half]
    return np.where(np.isnan(lanes[:, 0]), np.nan, lanes[:, 0])


def add_residual(
    residual: Values[Float], gradient: Values[Float], out: Values[Float]
) -> float:
    """Write residual + gradient; returns the sum of its squares, block after block."""
    reduction.combine_dense("sum", residual, gradient, out)
    total = 0.0
    for part in block_squared_norms(out, SQUARES_BLOCK).tolist():
        total += part
    return total


def top_k_with_residual(
    residual: Values[Float], gradient: Values[Float], k: int, out: Values[Float]
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `top_k` of out, which is zeroed there; its squares are from before."""
    squares = add_residual(residual, gradient, out)
    indices, values = top_k(out, k)
    out[indices] = 0
    return indices, values, squares


def bucket_top_k_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    k: int,
    bucket: int,
    out: Values[Float],
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `bucket_top_k` of out, which is zeroed there."""
    squares = add_residual(residual, gradient, out)
    indices, values = bucket_top_k(out, k, bucket)
    out[indices] = 0
    return indices, values, squares


def at_least_with_residual(
    residual: Values[Float],
    gradient: Values[Float],
    threshold: float,
    out: Values[Float],
) -> tuple[Indices, Values[Float], float]:
    """`add_residual`, then `at_least` of out, which stays whole."""
    squares = add_residual(residual, gradient, out)
    indices, values = at_least(out, threshold)
    return indices, values, squares
