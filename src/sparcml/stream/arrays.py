"""Arrays of users: checks, and conversion to the arrays of a stream.

Conversions return the arguments of `Stream.unchecked`: size, indices, values, block and fill.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..validation import as_integer
from .densify import INDEX_BYTES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Indices: TypeAlias = NDArray[np.uint32]
Values: TypeAlias = NDArray[Any]  # float32, float64, int32 or int64

MAX_BLOCKS = 2**32 - 1
DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32", "int64")))
UINT32 = np.dtype(np.uint32)


class StreamArrays(NamedTuple):
    """Arrays and settings of a stream; `indices` is None if it is dense."""

    size: int
    indices: Indices | None
    values: Values
    block: int = 1
    fill: float = 0.0


def from_array(
    array: ArrayLike,
    *,
    block: int = 1,
    fill: float = 0.0,
    bitwise: bool = False,
    dense: bool = False,
) -> StreamArrays:
    """Return the entries that differ from `fill`, or all values if that is no larger.

    Compared as numbers, -0.0 equals 0.0; compared bitwise, it does not. With `dense`, all
    values are returned in any case.
    """
    flat = as_values(array).reshape(-1)
    fill = as_fill(fill, flat.dtype)
    check_shape(flat.size, block)
    if dense:
        return StreamArrays(flat.size, None, flat, block, fill)
    blocks, entry = flat.size // block, block * flat.itemsize
    # The largest nnz for which pairs are still smaller than dense.
    limit = max(0, (blocks * entry - 1) // (INDEX_BYTES + entry))
    # Counting first costs one fast pass and avoids writing half of a dense vector as pairs.
    nnz = kernels.count_nonfill(flat, fill, block, bitwise)
    if nnz > limit:
        return StreamArrays(flat.size, None, flat, block, fill)
    pairs = kernels.compact(flat, fill, block, bitwise, nnz)
    assert pairs is not None
    return StreamArrays(flat.size, *pairs, block, fill)


def from_pairs(
    size: int, indices: ArrayLike, values: ArrayLike, block: int = 1
) -> StreamArrays:
    """Return pairs sorted by index; values at the same index are added."""
    check_shape(size, block)
    positions = as_indices(indices, size // block)
    flat = as_values(values).reshape(-1)
    check_count(positions, flat, block)
    order = np.argsort(positions, kind="stable")
    ascending = positions[order]
    first = np.flatnonzero(np.diff(ascending, prepend=ascending[:1] + 1))
    unique = ascending[first]
    check_ascending(unique, size // block)
    rows = flat.reshape(-1, block)[order]
    # Without a dtype, NumPy adds int32 as int64.
    sums = np.add.reduceat(rows, first, axis=0, dtype=rows.dtype) if len(first) else rows
    return StreamArrays(size, unique, sums.reshape(-1), block)


def is_scipy(x: Any) -> bool:
    """Return whether x is a scipy sparse array or matrix; scipy is not imported for it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def from_scipy(x: Any, *, block: int = 1) -> StreamArrays:
    """Return the entries of a scipy sparse row or column."""
    if x.ndim == 2 and 1 not in x.shape:
        raise ValueError(
            f"from_dense: array must be one sparse row or column, got {x.shape}"
        )
    if block > 1:
        return from_array(x.toarray().reshape(-1), block=block)
    pairs = x.tocoo()
    positions = pairs.coords[0] if x.ndim == 1 or x.shape[0] != 1 else pairs.coords[1]
    return from_pairs(int(np.prod(x.shape)), positions, pairs.data)


def read_only_view(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_shape(size: object, block: object) -> None:
    """Check that size and block describe a vector whose blocks have 32-bit indices."""
    if type(size) is int and 0 <= size <= MAX_BLOCKS and type(block) is int and block == 1:
        return
    elements = as_integer("Stream", "size", size, minimum=0)
    width = as_integer("Stream", "block", block, minimum=1)
    if elements % width:
        raise ValueError(f"Stream: size must be a multiple of block={block}, got {size}")
    if elements // width > MAX_BLOCKS or width > MAX_BLOCKS:
        raise ValueError(
            f"Stream: size must be at most 2^32 - 1 blocks, got {elements // width} blocks of "
            f"{width}; use a larger block, or several streams"
        )


def check_count(indices: Indices, values: Values, block: int) -> None:
    """Check that there are `block` values per index."""
    if len(values) != len(indices) * block:
        raise ValueError(
            f"Stream: values must have {block} for each of {len(indices)} indices, "
            f"got {len(values)}"
        )


def check_ascending(indices: Indices, blocks: int) -> None:
    """Check that indices are strictly ascending and below `blocks`."""
    at = kernels.ascending_prefix(indices, blocks)
    if at == len(indices):
        return
    if indices[at] >= blocks:
        raise ValueError(f"Stream: indices must be in [0, {blocks}), got {indices[at]}")
    where = "twice" if indices[at] == indices[at - 1] else f"after {indices[at - 1]}"
    raise ValueError(
        f"Stream: indices must be ascending, got {indices[at]} {where} at position {at}; "
        f"Stream.from_pairs sorts them and adds duplicates"
    )


def as_fill(fill: float, dtype: np.dtype[Any]) -> float:
    """Return the value of absent entries; infinity is the extreme value of integers."""
    if dtype.kind == "f" or fill == 0:
        return fill
    if np.isinf(fill):
        limits = np.iinfo(dtype)
        return int(limits.max if fill > 0 else limits.min)
    if fill != dtype.type(fill):
        raise ValueError(f"Stream: fill must be a value of {dtype}, got {fill}")
    return int(fill)


def as_values(values: ArrayLike) -> Values:
    """Return a native, contiguous array; lists of numbers become float32."""
    if type(values) is np.ndarray and values.flags.c_contiguous and values.dtype in DTYPES:
        return values  # as most are; the rest takes longer than a short message
    check_unmasked("Stream", "values", values)
    array = np.asarray(values)
    if not hasattr(values, "dtype") and array.dtype.kind in "iuf":
        array = array.astype(np.float32)  # lists come as float64 or integers
    native = array.dtype.newbyteorder("=")
    if native not in DTYPES:
        raise TypeError(
            f"Stream: values must be float32, float64, int32 or int64, got {array.dtype}"
            f"{_conversion(array.dtype)}"
        )
    return np.ascontiguousarray(array, native)


def check_unmasked(function: str, parameter: str, array: Any) -> None:
    """Raise if an array has a mask, which a stream would lose."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{function}: {parameter} must not be a masked array, whose mask would be lost; use "
            f".filled(0), or another value for masked entries"
        )


def _conversion(dtype: np.dtype[Any]) -> str:
    """Return the remedy for a dtype: the conversion that loses the least."""
    if dtype.kind == "c":
        return "; use .view(np.float64) of complex128, or send .real and .imag"
    if dtype.kind not in "biuf":
        return ""
    if dtype.kind in "biu":
        limit = "" if np.can_cast(dtype, np.int64) else ", which is exact below 2**63"
        return f"; convert them with .astype(np.int64){limit}"
    if np.can_cast(dtype, np.float32):
        return "; convert them with .astype(np.float32)"
    return "; convert them with .astype(np.float64), which rounds them"


def as_indices(indices: ArrayLike, blocks: int) -> Indices:
    """Return a contiguous uint32 array of positions below `blocks`."""
    array = np.asarray(indices)
    if array.dtype is UINT32 and array.ndim == 1 and array.flags.c_contiguous:
        return array
    if array.size == 0:
        array = array.astype(np.uint32)
    if array.dtype.kind not in "iu":
        raise TypeError(f"Stream: indices must be integers, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"Stream: indices must be one-dimensional, got {array.ndim}-d")
    if array.dtype != np.uint32 and array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= blocks:
            bad = low if low < 0 else high
            raise ValueError(f"Stream: indices must be in [0, {blocks}), got {bad}")
    return np.ascontiguousarray(array, np.uint32)
