"""Reduction of streams in any operation, and their weighted sum.

The form of a result depends on the operands only, so all ranks have the same form. Memory of an
operand marked as scratch may be reused for the result.

A weighted sum is formed in float64 and rounded once. Weights such as 1/3 are not exact in float32,
and three of them add up to more than 1: a mean that is formed again and again in float32 would
drift. In float64 the error of the weights is far below the last bit of a float32 result: ranks
that agree stay exactly as they are.
"""

from __future__ import annotations

from math import copysign
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..operations import OPS
from .arrays import as_fill
from .densify import dense_is_smaller, densify, densify_if_smaller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .stream import Stream

    Sums = NDArray[np.float64]


CHUNK = 1 << 15  # values; the float64 sums of a chunk stay in the cache


def identity(op: str, dtype: np.dtype[Any]) -> float:
    """Return the value e with e op x == x, which absent entries stand for."""
    return as_fill(OPS[op].identity, dtype)


def add(a: Stream, b: Stream, op: str = "sum") -> Stream:
    """Return a op b, entry by entry; absent entries count as the identity."""
    _check_alike(a, b)
    fill = identity(op, a.dtype)
    a, b = refill(a, fill), refill(b, fill)
    if a.is_dense and b.is_dense:
        return _dense_dense(a, b, op)
    if a.is_dense:
        return _dense_sparse(a, b, op)
    if b.is_dense:
        return _dense_sparse(b, a, op)  # every operation is commutative, bit for bit
    # If one operand alone is as large as dense, merging first would be wasted.
    if dense_is_smaller(max(a.nnz, b.nnz), a.blocks, a.entry_bytes):
        return _dense_sparse(densify(a), b, op)
    return densify_if_smaller(_sparse_sparse(a, b, op))


def add_into(out: Stream, a: Stream, b: Stream, op: str = "sum") -> None:
    """Write a op b of dense streams to the values of `out`, which may be a or b."""
    _check_alike(a, b)
    kernels.combine_dense(op, a.raw_values, b.raw_values, out.raw_values)


def add_many(streams: Sequence[Stream], op: str = "sum") -> Stream:
    """Return ((s0 op s1) op s2) ..., in this order on every rank."""
    first = streams[0]
    fill = identity(op, first.dtype)
    if len(streams) == 1:
        return densify_if_smaller(refill(first, fill))
    if any(s.is_dense for s in streams):
        total = first
        for s in streams[1:]:
            total = add(total, s, op)
        return total
    indices, values = kernels.merge_many(op, [s.pairs() for s in streams], first.block)
    return densify_if_smaller(first.like(indices, values, fill=fill))


def difference(a: Stream, b: Stream) -> Stream:
    """Return a - b."""
    if a.is_dense and b.is_dense:
        _check_alike(a, b)
        values = buffer_pool.empty(a.size, a.dtype)
        np.subtract(a.raw_values, b.raw_values, out=values)
        return a.like(None, values, fill=0.0)
    if not (a.is_dense or b.is_dense) and np.array_equal(a.indices, b.indices):
        _check_alike(a, b)  # a stream and its decoded message: no merge is needed
        values = kernels.combine_dense("sum", a.raw_values, -b.raw_values)
        return a.like(a.raw_indices, values, fill=0.0)
    return add(a, b.like(b.raw_indices, -b.raw_values, fill=0.0))


def refill(x: Stream, fill: float) -> Stream:
    """Return the same entries with another value for absent ones."""
    if x.fill == fill and copysign(1, x.fill) == copysign(1, fill):  # -0.0 differs from 0.0
        return x
    return x.like(x.raw_indices, x.raw_values, fill=fill, scratch=x.is_scratch)


def _dense_dense(a: Stream, b: Stream, op: str) -> Stream:
    out = a if a.is_scratch else b if b.is_scratch else None
    values = kernels.combine_dense(
        op, a.raw_values, b.raw_values, None if out is None else out.raw_values
    )
    return a.like(None, values, fill=identity(op, a.dtype))


def _dense_sparse(dense: Stream, sparse: Stream, op: str) -> Stream:
    values = dense.raw_values if dense.is_scratch else buffer_pool.copy(dense.raw_values)
    kernels.scatter(op, values, *sparse.pairs(), dense.block)
    return dense.like(None, values, fill=identity(op, dense.dtype))


def _sparse_sparse(a: Stream, b: Stream, op: str) -> Stream:
    indices, values = kernels.merge(op, *a.pairs(), *b.pairs(), a.block)
    return a.like(indices, values, fill=identity(op, a.dtype))


def _check_alike(a: Stream, b: Stream) -> None:
    for attribute in ("size", "block", "dtype"):
        left, right = getattr(a, attribute), getattr(b, attribute)
        if left != right:
            raise ValueError(
                f"add: streams must have the same {attribute}, got {left} and {right}"
            )


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
