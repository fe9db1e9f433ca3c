"""Reductions of sparse and dense vectors, defined in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels.reduction import Entries, Float, Indices, Scalar, Values

UFUNCS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}
IDENTITY = {"sum": -0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the value e with e op x == x, bit for bit."""
    if dtype.kind == "f" or op in {"sum", "prod"}:
        return dtype.type(IDENTITY[op])
    return np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min


def combine_dense(
    op: str, a: Values[Scalar], b: Values[Scalar], out: Values[Scalar] | None = None
) -> Values[Scalar]:
    """Return a op b: NaN wins, -0 < +0, every NaN is the canonical one, integers wrap."""
    with np.errstate(all="ignore"):
        result = UFUNCS[op](a, b)
    if op in {"min", "max"} and a.dtype.kind == "f":
        left = np.signbit(a) == (op == "min")
        result = np.where(a == b, np.where(left, a, b), result)
    if a.dtype.kind == "f":
        result[np.isnan(result)] = np.nan
    if out is None:
        return result
    out[...] = result
    return out


def add_momentum(
    momentum: float, u: Values[Float], g: Values[Float], *, nesterov: bool
) -> tuple[Values[Float], Values[Float]]:
    """Return the new momentum, and the term that replaces the gradient."""
    m = g.dtype.type(momentum)
    with np.errstate(all="ignore"):
        velocity = m * (u + g) if nesterov else m * u + g
        return velocity, velocity + g if nesterov else velocity


def merge(
    op: str,
    ai: Indices,
    av: Values[Scalar],
    bi: Indices,
    bv: Values[Scalar],
    block: int = 1,
) -> Entries[Scalar]:
    """Return the union of the entries of a and b, and a op b where both have one."""
    return merge_many(op, [(ai, av), (bi, bv)], block)


def merge_many(op: str, parts: list[Entries[Scalar]], block: int = 1) -> Entries[Scalar]:
    """Return the union of the entries of all parts, folded from the first to the last."""
    indices = np.unique(np.concatenate([i for i, _ in parts]))
    dtype = parts[0][1].dtype
    total = np.full(indices.size * block, identity(op, dtype), dtype)
    for i, v in parts:
        scatter(op, total, np.searchsorted(indices, i).astype(np.uint32), v, block)
    return indices, total


def coalesce(
    indices: NDArray[np.int64], values: Values[Scalar], block: int = 1
) -> Entries[Scalar]:
    """Return the entries sorted by index; values of equal index are added in their order."""
    zero = np.full(block, identity("sum", values.dtype), values.dtype)
    sums: dict[int, Values[Scalar]] = {}
    for index, row in zip(indices.tolist(), values.reshape(-1, block), strict=True):
        sums[index] = combine_dense("sum", sums.get(index, zero), row)
    ordered = sorted(sums)
    out = [sums[index] for index in ordered] or [values[:0]]
    return np.array(ordered, np.uint32), np.concatenate(out)


def scatter(
    op: str,
    dense: Values[Scalar],
    indices: Indices,
    values: Values[Scalar],
    block: int = 1,
) -> None:
    """Set dense[i] = dense[i] op value for each block index i."""
    rows = dense.reshape(-1, block)
    old = rows[indices].ravel()
    rows[indices] = combine_dense(op, old, values).reshape(-1, block)


def scatter_assign(
    dense: Values[Scalar], indices: Indices, values: Values[Scalar], block: int = 1
) -> None:
    """Set dense[i] = value for each block index i."""
    dense.reshape(-1, block)[indices] = values.reshape(-1, block)


def compact(
    dense: Values[Scalar],
    fill: float = 0.0,
    block: int = 1,
    bitwise: bool = False,
    limit: int | None = None,
) -> Entries[Scalar] | None:
    """Return the blocks that differ from `fill`, or None if there are more than `limit`."""
    rows = dense.reshape(-1, block)
    bits = np.dtype(f"u{dense.itemsize}")
    filled = np.full_like(rows, fill)
    other = rows.view(bits) != filled.view(bits) if bitwise else rows != filled
    indices = np.flatnonzero(other.any(axis=1)).astype(np.uint32)
    if limit is not None and indices.size > limit:
        return None
    return indices, rows[indices].ravel()


def count_nonfill(
    dense: Values[Scalar], fill: float = 0.0, block: int = 1, bitwise: bool = False
) -> int:
    """Return the number of blocks that differ from `fill`."""
    entries = compact(dense, fill, block, bitwise)
    assert entries is not None
    return entries[0].size


def ascending_prefix(indices: Indices, blocks: int) -> int:
    """Return the length of the longest prefix that ascends strictly and is below `blocks`."""
    wrong = indices >= blocks
    wrong[1:] |= indices[1:] <= indices[:-1]
    return int(wrong.argmax()) if wrong.any() else indices.size
