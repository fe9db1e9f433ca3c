"""Sums of sparse and dense vectors, as `sparcml.kernels.sums` has them."""

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels.reduction import Entries, Float, Indices, Values
from sparcml.kernels.reference.coding import bitmap_encode

UFUNCS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}
NEUTRAL = {"sum": -0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}


def combine_dense(
    op: str, a: Values[Float], b: Values[Float], out: Values[Float] | None = None
) -> Values[Float]:
    """Return a op b: NaN wins, -0 < +0, and every NaN is the canonical one."""
    with np.errstate(all="ignore"):
        result = UFUNCS[op](a, b)
    if op in {"min", "max"}:
        left = np.signbit(a) == (op == "min")
        result = np.where(a == b, np.where(left, a, b), result)
    result[np.isnan(result)] = np.nan
    if out is None:
        return result
    out[...] = result
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
    return merge_many(op, [(ai, av), (bi, bv)], block)


def merge_many(op: str, parts: list[Entries[Float]], block: int = 1) -> Entries[Float]:
    """The entries of all parts together, folded from the first part to the last."""
    indices = np.unique(np.concatenate([i for i, _ in parts]))
    total = np.full(indices.size * block, NEUTRAL[op], parts[0][1].dtype)
    for i, v in parts:
        scatter(op, total, np.searchsorted(indices, i).astype(np.uint32), v, block)
    return indices, total


def scatter(
    op: str,
    dense: Values[Float],
    indices: Indices,
    values: Values[Float],
    block: int = 1,
) -> None:
    """dense[i] = dense[i] op value, for the blocks that have an index."""
    rows = dense.reshape(-1, block)
    old = rows[indices].ravel()
    rows[indices] = combine_dense(op, old, values).reshape(-1, block)


def scatter_assign(
    dense: Values[Float], indices: Indices, values: Values[Float], block: int = 1
) -> None:
    """dense[i] = value, for the blocks that have an index."""
    dense.reshape(-1, block)[indices] = values.reshape(-1, block)


def compact(
    dense: Values[Float],
    fill: float = 0.0,
    block: int = 1,
    bitwise: bool = False,
    limit: int | None = None,
) -> Entries[Float] | None:
    """The blocks with a value other than fill; None if there are more than limit."""
    rows = dense.reshape(-1, block)
    bits = np.dtype(f"u{dense.itemsize}")
    filled = np.full_like(rows, fill)
    other = rows.view(bits) != filled.view(bits) if bitwise else rows != filled
    indices = np.flatnonzero(other.any(axis=1)).astype(np.uint32)
    if limit is not None and indices.size > limit:
        return None
    return indices, rows[indices].ravel()


def count_nonfill(
    dense: Values[Float], fill: float = 0.0, block: int = 1, bitwise: bool = False
) -> int:
    """The number of blocks with a value other than fill."""
    found = compact(dense, fill, block, bitwise)
    assert found is not None
    return found[0].size


def ascending_prefix(indices: Indices, blocks: int) -> int:
    """The first position that breaks i[0] < i[1] < ... < blocks; the size if none."""
    wrong = indices >= blocks
    wrong[1:] |= indices[1:] <= indices[:-1]
    return int(wrong.argmax()) if wrong.any() else indices.size


def bitmap_compact(
    dense: Values[Float],
    fill: float,
    plane: NDArray[np.uint8],
    values: Values[Float],
) -> int:
    """A bit plane and the values that differ from fill, bit for bit; returns how many."""
    found = compact(dense, fill, bitwise=True, limit=values.size)
    if found is None:
        return values.size + 1
    indices, kept = found
    plane[:] = bitmap_encode(indices, dense.size)
    values[: kept.size] = kept
    return kept.size


def bitmap_expand(
    plane: NDArray[np.uint8], values: Values[Float], fill: float, out: Values[Float]
) -> None:
    """The values where the plane (taken to be a good one) has ones, fill elsewhere."""
    ones = np.unpackbits(plane, count=out.size, bitorder="little").astype(bool)
    out[:] = fill
    out[ones] = values
