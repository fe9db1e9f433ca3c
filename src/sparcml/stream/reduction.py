"""Adding streams: four cases, and many at once. Any of the four operations, not only sum.

Which form the result has depends on the operands alone, so all ranks agree on it.
Memory of an operand marked scratch may be reused for the result.
"""

from __future__ import annotations

from math import copysign
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from .densify import dense_is_smaller, densify, densify_if_smaller
from .ops import identity
from .stream import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence


def add(a: Stream, b: Stream, op: str = "sum") -> Stream:
    """A op b, entry by entry; what is absent counts as the neutral element."""
    _check_alike(a, b)
    fill = identity(op)
    a, b = refill(a, fill), refill(b, fill)
    if a.is_dense and b.is_dense:
        return _dense_dense(a, b, op)
    if a.is_dense:
        return _dense_sparse(a, b, op)
    if b.is_dense:
        return _dense_sparse(b, a, op)  # every operation is commutative, bit for bit
    # One of them alone is as large as dense: do not merge first.
    if dense_is_smaller(max(a.nnz, b.nnz), a.blocks, a.entry_bytes):
        return _dense_sparse(densify(a), b, op)
    return densify_if_smaller(_sparse_sparse(a, b, op))


def add_into(out: Stream, a: Stream, b: Stream, op: str = "sum") -> None:
    """A op b of dense streams, to where `out` has its values; it may be one of them."""
    _check_alike(a, b)
    kernels.combine_dense(op, a.raw_values, b.raw_values, out.raw_values)


def add_many(streams: Sequence[Stream], op: str = "sum") -> Stream:
    """((s0 op s1) op s2) ...: the same order on every rank, whatever arrived first."""
    first = streams[0]
    fill = identity(op)
    if len(streams) == 1:
        return densify_if_smaller(refill(first, fill))
    if any(s.is_dense for s in streams):
        total = streams[0]
        for s in streams[1:]:
            total = add(total, s, op)
        return total
    indices, values = kernels.merge_many(op, [s.pairs() for s in streams], first.block)
    merged = Stream.unchecked(first.size, indices, values, first.block, fill, scratch=True)
    return densify_if_smaller(merged)


def difference(a: Stream, b: Stream) -> Stream:
    """What must be added to b to give a, to rounding."""
    if a.is_dense and b.is_dense:
        _check_alike(a, b)
        values = buffer_pool.empty(a.size, a.dtype)
        np.subtract(a.raw_values, b.raw_values, out=values)
        return Stream.unchecked(a.size, None, values, a.block, scratch=True)
    minus = Stream.unchecked(b.size, b.raw_indices, -b.raw_values, b.block, scratch=True)
    return add(a, minus)


def refill(x: Stream, fill: float) -> Stream:
    """The same entries with another meaning of what is absent."""
    if x.fill == fill and copysign(1, x.fill) == copysign(1, fill):  # -0.0 is another
        return x
    return Stream.unchecked(
        x.size, x.raw_indices, x.raw_values, x.block, fill, scratch=x.is_scratch
    )


def _dense_dense(a: Stream, b: Stream, op: str) -> Stream:
    out = a if a.is_scratch else b if b.is_scratch else None
    values = kernels.combine_dense(
        op, a.raw_values, b.raw_values, None if out is None else out.raw_values
    )
    return Stream.unchecked(a.size, None, values, a.block, identity(op), scratch=True)


def _dense_sparse(dense: Stream, sparse: Stream, op: str) -> Stream:
    values = dense.raw_values if dense.is_scratch else buffer_pool.copy(dense.raw_values)
    kernels.scatter(op, values, *sparse.pairs(), dense.block)
    return Stream.unchecked(
        dense.size, None, values, dense.block, identity(op), scratch=True
    )


def _sparse_sparse(a: Stream, b: Stream, op: str) -> Stream:
    indices, values = kernels.merge(op, *a.pairs(), *b.pairs(), a.block)
    return Stream.unchecked(a.size, indices, values, a.block, identity(op), scratch=True)


def _check_alike(a: Stream, b: Stream) -> None:
    for what in ("size", "block", "dtype"):
        mine, other = getattr(a, what), getattr(b, what)
        if mine != other:
            raise ValueError(f"add: streams must have the same {what}, got {mine}, {other}")
