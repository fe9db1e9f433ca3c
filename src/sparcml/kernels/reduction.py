"""Sums of sparse and dense vectors: typed entrances to the compiled loops.

A sparse vector is strictly ascending uint32 indices and their values; with `block` > 1
each index stands for that many consecutive values. A NaN result is always the canonical
one.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Float = TypeVar("Float", np.float32, np.float64)
Indices = NDArray[np.uint32]
Values = NDArray[Float]
Entries = tuple[Indices, Values[Float]]

OPS = {"sum": 0, "min": 1, "max": 2, "prod": 3}


def combine_dense(
    op: str, a: Values[Float], b: Values[Float], out: Values[Float] | None = None
) -> Values[Float]:
    """Return a op b, into `out` if given (which may be a or b)."""
    if out is None:
        out = buffer_pool.empty(a.size, a.dtype)
    _core.combine_dense(OPS[op], a, b, out)
    return out


def merge(
    op: str,
    ai: Indices,
    av: Values[Float],
    bi: Indices,
    bv: Values[Float],
    block: int = 1,
) -> Entries[Float]:
    """The entries of a and b together; where both have one, a's op b's."""
    indices = buffer_pool.empty(ai.size + bi.size, np.uint32)
    values = buffer_pool.empty(av.size + bv.size, av.dtype)
    nnz = _core.merge(OPS[op], ai, av, bi, bv, block, indices, values)
    return indices[:nnz], values[: nnz * block]


def merge_many(op: str, parts: list[Entries[Float]], block: int = 1) -> Entries[Float]:
    """The entries of all parts together, folded from the first part to the last."""
    if not parts:
        raise ValueError("merge_many: parts must not be empty")
    indices = [i for i, _ in parts]
    values = [v for _, v in parts]
    oi = buffer_pool.empty(sum(i.size for i in indices), np.uint32)
    ov = buffer_pool.empty(oi.size * block, values[0].dtype)
    nnz = _core.merge_many(OPS[op], indices, values, block, oi, ov)
    return oi[:nnz], ov[: nnz * block]


def scatter(
    op: str,
    dense: Values[Float],
    indices: Indices,
    values: Values[Float],
    block: int = 1,
) -> None:
    """dense[i] = dense[i] op value, for the blocks that have an index."""
    _core.scatter(OPS[op], dense, indices, values, block)


def scatter_assign(
    dense: Values[Float], indices: Indices, values: Values[Float], block: int = 1
) -> None:
    """dense[i] = value, bit for bit, for the blocks that have an index."""
    _core.place(dense, indices, values, block)


def compact(
    dense: Values[Float],
    fill: float = 0.0,
    block: int = 1,
    bitwise: bool = False,
    limit: int | None = None,
) -> Entries[Float] | None:
    """The blocks with a value other than fill; None if there are more than limit.

    As numbers, -0.0 equals 0.0 and NaN differs from all; `bitwise` compares bits.
    """
    most = dense.size // block if block > 0 else 0
    limit = most if limit is None else min(limit, most)
    # Room for the worst case costs address space only, as the system hands out what is
    # written to; copies let go of the rest.
    indices = np.empty(limit, np.uint32)
    values = np.empty(limit * block, dense.dtype)
    nnz = _core.compact(dense, fill, block, bitwise, limit, indices, values)
    if nnz > limit:
        return None
    indices, values = indices[:nnz], values[: nnz * block]
    return (indices, values) if nnz > limit // 2 else (indices.copy(), values.copy())


def count_nonfill(
    dense: Values[Float], fill: float = 0.0, block: int = 1, bitwise: bool = False
) -> int:
    """The number of blocks with a value other than fill."""
    return _core.count(dense, fill, block, bitwise)


def ascending_prefix(indices: Indices, blocks: int) -> int:
    """The first position that breaks i[0] < i[1] < ... < blocks; the size if none."""
    return _core.ascending(indices, blocks)


def bitmap_compact(
    dense: Values[Float],
    fill: float,
    plane: NDArray[np.uint8],
    values: Values[Float],
) -> int:
    """A bit plane and the values that differ from fill, bit for bit; returns how many.

    As `compact(..., bitwise=True)` and `bitmap_encode`, in one pass. If there are more
    than `values` has room for, it says so by a larger number.
    """
    return _core.squeeze(dense, fill, values.size, plane, values)


def bitmap_expand(
    plane: NDArray[np.uint8], values: Values[Float], fill: float, out: Values[Float]
) -> None:
    """The values where the plane has ones, fill elsewhere; ValueError if they disagree."""
    _core.expand(plane, values, fill, out)
