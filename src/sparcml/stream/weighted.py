"""Weighted sum of streams, in float64 and rounded once.

Weights such as 1/3 are not exact in float32, and three of them add up to more than 1. A mean
that is formed again and again in float32 would drift. In float64 the error of the weights is far
below the last bit of a float32 result: ranks that agree stay exactly as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from .densify import densify_if_smaller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .stream import Stream

    Sums = NDArray[np.float64]

CHUNK = 1 << 15  # values; the float64 sums of a chunk stay in the cache


def weighted_sum(weights: Sequence[float], streams: Sequence[Stream]) -> Stream:
    """Return w0 s0 + w1 s1 + ..., added in this order.

    Absent entries count as 0, and a stream of weight 0 does not count at all. Dense and sparse
    operands give the same bits, and every NaN in the result is the canonical one.

    Args:
        weights: One weight per stream, at least one of them not 0.
        streams: Streams of float values, of the same size, block and dtype.
    """
    terms = [(w, s) for w, s in zip(weights, streams, strict=True) if w != 0]
    with np.errstate(over="ignore", invalid="ignore"):
        if all(s.is_dense for _, s in terms):
            first = terms[0][1]
            vectors = [s.raw_values for _, s in terms]
            return first.like(None, kernels.weighted_sum([w for w, _ in terms], vectors))
        if any(s.is_dense for _, s in terms):
            return _dense_sum(terms)
        return densify_if_smaller(_sparse_sum(terms))


def _sparse_sum(terms: Sequence[tuple[float, Stream]]) -> Stream:
    first = terms[0][1]
    parts = [(s.pairs()[0], _scaled(w, s.raw_values)) for w, s in terms]
    indices, values = kernels.merge_many("sum", parts, first.block)
    return first.like(indices, _rounded(values, np.empty(len(values), first.dtype)))


def _dense_sum(terms: Sequence[tuple[float, Stream]]) -> Stream:
    first = terms[0][1]
    step = max(1, CHUNK // first.block) * first.block
    out = buffer_pool.empty(first.size, first.dtype)
    buffers = np.empty((2, min(step, first.size)))
    for start in range(0, first.size, step):
        end = min(start + step, first.size)
        total, term = buffers[:, : end - start]
        _sum_range(terms, start, total, term)
        _rounded(total, out[start:end])
    return first.like(None, out)


def _sum_range(
    terms: Sequence[tuple[float, Stream]], start: int, total: Sums, term: Sums
) -> None:
    """Write the sum of the elements from `start` on to `total`; `term` is scratch memory."""
    end = start + len(total)
    for number, (weight, s) in enumerate(terms):
        if s.is_dense:
            target = term if number else total
            np.multiply(s.raw_values[start:end], weight, out=target, dtype=np.float64)
            if number:
                np.add(total, term, out=total)
            continue
        if not number:
            total[:] = 0
        indices, values = s.pairs()
        low, high = np.searchsorted(indices, (start // s.block, end // s.block))
        shifted = indices[low:high] - np.uint32(start // s.block)
        scaled = _scaled(weight, values[low * s.block : high * s.block])
        kernels.scatter("sum", total, shifted, scaled, s.block)


def _scaled(weight: float, values: NDArray[np.floating]) -> Sums:
    scaled: Sums = np.multiply(values, weight, dtype=np.float64)
    return scaled


def _rounded(total: NDArray[np.float64], out: NDArray[np.floating]) -> NDArray[np.floating]:
    out[:] = total
    is_nan = np.isnan(out)
    if is_nan.any():
        out[is_nan] = np.nan  # the canonical one
    return out
