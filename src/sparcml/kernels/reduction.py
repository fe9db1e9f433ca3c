"""Reductions of sparse and dense vectors.

A sparse vector has strictly ascending uint32 indices and one value per index. With
`block` > 1, each index stands for `block` consecutive values. Every NaN in a result is
the canonical quiet NaN, so that all ranks hold the same bits. Sums and products of integers
wrap around, as in NumPy.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from ..operations import OPS
from . import _core

Float = TypeVar("Float", np.float32, np.float64)
Scalar = TypeVar("Scalar", np.float32, np.float64, np.int32, np.int64)
Indices = NDArray[np.uint32]
Values = NDArray[Scalar]
Entries = tuple[Indices, Values[Scalar]]


def combine_dense(
    op: str, a: Values[Scalar], b: Values[Scalar], out: Values[Scalar] | None = None
) -> Values[Scalar]:
    """Return a op b, written to `out` if given, which may be a or b."""
    if out is None:
        out = buffer_pool.empty(a.size, a.dtype)
    _core.combine_dense(OPS[op].number, a, b, out)
    return out


@dataclass(frozen=True)
class Velocity:
    """Momentum whose term replaces the gradient in the functions with a residual.

    Attributes:
        u: Momentum before the step.
        out: Array that receives the momentum after the step; it may be `u`.
        momentum: Factor.
        nesterov: Whether the momentum is Nesterov's.
    """

    u: NDArray[Any]
    out: NDArray[Any]
    momentum: float
    nesterov: bool = False

    def arguments(self) -> tuple[NDArray[Any], NDArray[Any], float, bool]:
        """Return the argument of the compiled functions."""
        return self.u, self.out, float(self.momentum), self.nesterov

    def advance(self, g: NDArray[Any]) -> NDArray[Any]:
        """Write the new momentum and return what replaces the gradient: `out`, or Nesterov's."""
        term = buffer_pool.empty(g.size, g.dtype) if self.nesterov else self.out
        _core.add_momentum(self.momentum, self.nesterov, self.u, g, self.out, term)
        return term

    def term(self, g: NDArray[Any], stride: int = 1) -> NDArray[Any]:
        """Return what replaces every stride-th value of the gradient; `out` is unchanged."""
        u, g = (np.ascontiguousarray(x[::stride]) for x in (self.u, g))
        return add_momentum(self.momentum, u, g, nesterov=self.nesterov)[1]


def add_momentum(
    momentum: float, u: Values[Float], g: Values[Float], *, nesterov: bool
) -> tuple[Values[Float], Values[Float]]:
    """Return the new momentum m u + g twice, or Nesterov's m (u + g) and that plus g."""
    velocity = Velocity(u, buffer_pool.empty(g.size, g.dtype), momentum, nesterov)
    term = velocity.advance(g)
    return velocity.out, term


def merge(
    op: str,
    ai: Indices,
    av: Values[Scalar],
    bi: Indices,
    bv: Values[Scalar],
    block: int = 1,
) -> Entries[Scalar]:
    """Return the union of the entries of a and b, and a op b where both have one."""
    indices = buffer_pool.empty(ai.size + bi.size, np.uint32)
    values = buffer_pool.empty(av.size + bv.size, av.dtype)
    nnz = _core.merge(OPS[op].number, ai, av, bi, bv, block, indices, values)
    return indices[:nnz], values[: nnz * block]


def merge_many(op: str, parts: list[Entries[Scalar]], block: int = 1) -> Entries[Scalar]:
    """Return the union of the entries of all parts, folded from the first to the last."""
    if not parts:
        raise ValueError("merge_many: parts must not be empty")
    indices = [i for i, _ in parts]
    values = [v for _, v in parts]
    oi = buffer_pool.empty(sum(i.size for i in indices), np.uint32)
    ov = buffer_pool.empty(oi.size * block, values[0].dtype)
    nnz = _core.merge_many(OPS[op].number, indices, values, block, oi, ov)
    return oi[:nnz], ov[: nnz * block]


def coalesce(
    indices: NDArray[np.int64], values: Values[Scalar], block: int = 1
) -> Entries[Scalar]:
    """Return the entries sorted by index; values of equal index are added in their order.

    Raises:
        ValueError: If an index is negative or not less than 2**32.
    """
    oi = buffer_pool.empty(indices.size, np.uint32)
    ov = buffer_pool.empty(values.size, values.dtype)
    nnz = _core.coalesce(indices, values, block, oi, ov)
    return oi[:nnz], ov[: nnz * block]


def scatter(
    op: str,
    dense: Values[Scalar],
    indices: Indices,
    values: Values[Scalar],
    block: int = 1,
) -> None:
    """Set dense[i] = dense[i] op value for each block index i."""
    _core.scatter(OPS[op].number, dense, indices, values, block)


def compact(
    dense: Values[Scalar],
    fill: float = 0.0,
    block: int = 1,
    bitwise: bool = False,
    limit: int | None = None,
) -> Entries[Scalar] | None:
    """Return the blocks that differ from `fill`, or None if there are more than `limit`.

    Args:
        dense: The vector.
        fill: The value of entries that are not stored.
        block: Number of consecutive values per index.
        bitwise: Compare bits. Otherwise -0.0 equals 0.0, and NaN differs from all values.
        limit: Maximum number of blocks. Default: all.
    """
    blocks = dense.size // block if block > 0 else 0
    limit = blocks if limit is None else min(limit, blocks)
    # Untouched pages of the worst-case buffers cost only address space; a copy frees them.
    indices = np.empty(limit, np.uint32)
    values = np.empty(limit * block, dense.dtype)
    nnz = _core.compact(dense, _fill(dense, fill), block, bitwise, limit, indices, values)
    if nnz > limit:
        return None
    indices, values = indices[:nnz], values[: nnz * block]
    return (indices, values) if nnz > limit // 2 else (indices.copy(), values.copy())


def count_nonfill(
    dense: Values[Scalar], fill: float = 0.0, block: int = 1, bitwise: bool = False
) -> int:
    """Return the number of blocks that differ from `fill`; `compact` explains `bitwise`."""
    return _core.count_nonfill(dense, _fill(dense, fill), block, bitwise)


def _fill(dense: NDArray[Any], fill: float) -> Any:
    return fill if dense.dtype.kind == "f" else int(fill)
