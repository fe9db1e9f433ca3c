"""Stream: a vector of which only the entries that matter are stored.

Sparse: `indices` (uint32, strictly ascending) and one block of `block` consecutive
values for each. Dense: all values, and no indices. What is not stored equals `fill`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import kernels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Indices: TypeAlias = NDArray[np.uint32]
Values: TypeAlias = NDArray[Any]  # float32 or float64

MOST_BLOCKS = 2**32 - 1
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Stream:
    """A sparse or dense vector of float32 or float64.

    The arrays are shared with the caller where they already have the right type and
    layout, and copied where not (other byte order, not contiguous, other integer type);
    do not change them while the stream is in use. What a stream hands out is read-only.

    Args:
        size: Number of elements of the whole vector, a multiple of `block`.
        indices: Ascending positions of the stored blocks; none twice. Pairs in any order
            are for `Stream.from_pairs`.
        values: `block` values for each index.
        block: Consecutive elements an entry consists of, such as an embedding row.

    Example:
        >>> s = Stream(8, [1, 6], [0.5, -2.0])
        >>> (s + s).to_dense()
        array([ 0.,  1.,  0.,  0.,  0.,  0., -4.,  0.], dtype=float32)
    """

    __slots__ = ("_scratch", "block", "fill", "raw_indices", "raw_values", "size")

    size: int
    block: int
    fill: float
    raw_indices: Indices | None
    raw_values: Values

    def __init__(
        self, size: int, indices: ArrayLike, values: ArrayLike, *, block: int = 1
    ) -> None:
        check_shape(size, block)
        positions = as_indices(indices, size // block)
        bad = kernels.ascending_prefix(positions, size // block)
        if bad < len(positions):
            raise ValueError(_why_bad(positions, bad, size // block))
        flat = as_values(values).reshape(-1)
        check_count(positions, flat, block)
        self._set(size, positions, flat, block, 0.0, scratch=False)

    @classmethod
    def unchecked(
        cls,
        size: int,
        indices: Indices | None,
        values: Values,
        block: int = 1,
        fill: float = 0.0,
        *,
        scratch: bool = False,
    ) -> Stream:
        """Without checks, for arrays that are known to be right.

        `scratch` says that nobody else uses the arrays, so a sum may overwrite them.
        """
        self = cls.__new__(cls)
        self._set(size, indices, values, block, fill, scratch=scratch)
        return self

    def _set(
        self,
        size: int,
        indices: Indices | None,
        values: Values,
        block: int,
        fill: float,
        *,
        scratch: bool,
    ) -> None:
        self.size, self.block, self.fill = int(size), int(block), fill
        self.raw_indices, self.raw_values, self._scratch = indices, values, scratch

    @classmethod
    def from_pairs(
        cls, size: int, indices: ArrayLike, values: ArrayLike, *, block: int = 1
    ) -> Stream:
        """From pairs in any order; values at the same index are summed."""
        check_shape(size, block)
        positions = as_indices(indices, size // block)
        flat = as_values(values).reshape(-1)
        check_count(positions, flat, block)
        order = np.argsort(positions, kind="stable")
        sorted_ = positions[order]
        first = np.flatnonzero(np.diff(sorted_, prepend=sorted_[:1] + 1))
        unique = sorted_[first]
        bad = kernels.ascending_prefix(unique, size // block)
        if bad < len(unique):
            raise ValueError(_why_bad(unique, bad, size // block))
        rows = flat.reshape(-1, block)[order]
        sums = np.add.reduceat(rows, first, axis=0) if len(first) else rows
        return cls.unchecked(size, unique, sums.reshape(-1), block)

    @classmethod
    def from_dense(
        cls, array: Any, *, block: int | None = None, fill: float = 0.0
    ) -> Stream:
        """From an array, keeping what differs from `fill`.

        Takes NumPy arrays of any shape (in C order), torch tensors dense or sparse, and
        scipy sparse rows or columns. A vector that is not smaller as pairs stays dense.
        Rows of a sparse torch tensor, such as an embedding's gradient, become blocks.
        """
        from .convert import from_any, from_array

        if not isinstance(array, np.ndarray):
            return from_any(array, block=block, fill=fill)
        return from_array(array, block=block or 1, fill=fill)

    @property
    def blocks(self) -> int:
        """Number of blocks of the whole vector: size / block."""
        return self.size // self.block

    @property
    def nnz(self) -> int:
        """Number of stored entries (blocks)."""
        return self.blocks if self.raw_indices is None else len(self.raw_indices)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.raw_values.dtype

    @property
    def entry_bytes(self) -> int:
        """Bytes of one entry's values."""
        return self.block * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays: nnz * (4 + entry bytes) sparse, all values dense."""
        indices = 0 if self.raw_indices is None else self.raw_indices.nbytes
        return indices + self.raw_values.nbytes

    @property
    def density(self) -> float:
        """Stored entries as a share of all; 1 for the empty vector."""
        return self.nnz / self.blocks if self.blocks else 1.0

    @property
    def is_dense(self) -> bool:
        """Whether all values are stored, without indices."""
        return self.raw_indices is None

    @property
    def is_scratch(self) -> bool:
        """Whether a sum may overwrite the arrays: they are writable and nobody else's."""
        return self._scratch and self.raw_values.flags.writeable

    @property
    def indices(self) -> Indices:
        """Positions of the stored blocks, read-only; all of them if dense."""
        if self.raw_indices is None:
            return read_only(np.arange(self.blocks, dtype=np.uint32))
        return read_only(self.raw_indices)

    @property
    def values(self) -> Values:
        """Stored values, read-only: one each, or a row of `block` each."""
        shape = (-1,) if self.block == 1 else (self.nnz, self.block)
        return read_only(self.raw_values.reshape(shape))

    def to_dense(self) -> Values:
        """All `size` values as a new array."""
        from .densify import densify

        return self.raw_values.copy() if self.is_dense else densify(self).raw_values

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_array of shape (1, size)."""
        from .convert import to_scipy

        return to_scipy(self)

    def to_torch(self) -> Any:
        """A torch sparse COO tensor; blocks become rows: (blocks, block)."""
        from .convert import to_torch

        return to_torch(self)

    def pairs(self) -> tuple[Indices, Values]:
        """The stored indices and values as the kernels take them; not if dense."""
        assert self.raw_indices is not None, "a dense stream has no pairs"
        return self.raw_indices, self.raw_values

    def read_only(self) -> Stream:
        """The same stream, never to be overwritten: what a user gets."""
        self._scratch = False
        return self

    def __add__(self, other: object) -> Stream:
        from .densify import densify
        from .reduction import add

        if not isinstance(other, Stream):
            return NotImplemented
        # Where what is absent is not zero, it must be added like the rest.
        a, b = (x if x.fill == 0 else densify(x) for x in (self, other))
        return add(a, b).read_only()

    def __repr__(self) -> str:
        kind = "dense" if self.is_dense else f"nnz={self.nnz}"
        block = f", block={self.block}" if self.block > 1 else ""
        return f"Stream(size={self.size}, {kind}, {self.dtype}{block})"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_shape(size: object, block: object) -> None:
    """Raise unless size and block describe a vector that can be indexed."""
    if not isinstance(size, int | np.integer) or size < 0:
        raise ValueError(f"Stream: size must be an integer >= 0, got {size!r}")
    if not isinstance(block, int | np.integer) or not 1 <= block <= MOST_BLOCKS:
        raise ValueError(f"Stream: block must be an integer >= 1, got {block!r}")
    if size % block:
        raise ValueError(f"Stream: size must be a multiple of block={block}, got {size}")
    if size // block > MOST_BLOCKS:
        raise ValueError(
            f"Stream: size must be at most 2^32 - 1 blocks, got {size // block}; use a "
            f"larger block, or several streams"
        )


def check_count(indices: Indices, values: Values, block: int) -> None:
    """Raise unless there are `block` values for each index."""
    if len(values) != len(indices) * block:
        raise ValueError(
            f"Stream: values must be {block} for each of {len(indices)} indices, "
            f"got {len(values)}"
        )


def as_values(values: ArrayLike) -> Values:
    """A native, contiguous float array; float32 for lists of plain numbers."""
    array = np.asarray(values)
    if not hasattr(values, "dtype") and array.dtype.kind in "iuf":
        array = array.astype(np.float32)  # lists come as float64 or integers
    native = array.dtype.newbyteorder("=")
    if native not in DTYPES:
        raise TypeError(
            f"Stream: values must be float32 or float64, got {array.dtype}; convert them "
            f"with .astype(np.float32)"
        )
    return np.ascontiguousarray(array, native)


def as_indices(indices: ArrayLike, blocks: int) -> Indices:
    """Positions as a contiguous uint32 array, refused if they do not fit."""
    array = np.asarray(indices)
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
            raise ValueError(f"Stream: indices must lie in [0, {blocks}), got {bad}")
    return np.ascontiguousarray(array, np.uint32)


def _why_bad(indices: Indices, at: int, blocks: int) -> str:
    if indices[at] >= blocks:
        return f"Stream: indices must lie in [0, {blocks}), got {indices[at]}"
    kind = "twice" if indices[at] == indices[at - 1] else f"after {indices[at - 1]}"
    return (
        f"Stream: indices must ascend, got {indices[at]} {kind} at position {at}; "
        f"Stream.from_pairs sorts them and sums duplicates"
    )
