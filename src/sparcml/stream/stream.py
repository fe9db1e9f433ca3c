"""Stream: a vector that stores only some of its entries.

A sparse stream has `indices` (uint32, strictly ascending) and one block of `block` consecutive
values per index. A dense stream has all values and no indices. Absent entries equal `fill`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import arrays
from .densify import densify
from .reduction import add
from .tensors import from_tensor, is_sparse_tensor, is_tensor, to_torch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .arrays import Indices, Values


class Stream:
    """A sparse or dense vector of float32, float64, int32 or int64.

    Sums and products of integers wrap around, as in NumPy.
    The arrays are shared with the caller if they have the right type and layout, and copied
    otherwise (other byte order, not contiguous, other integer type). Do not change them while
    the stream is in use. The arrays that a stream returns are read-only.

    Args:
        size: Number of elements of the full vector, a multiple of `block`.
        indices: Strictly ascending positions of the stored blocks. Use `Stream.from_pairs` for
            pairs in any order.
        values: `block` values per index.
        block: Number of consecutive elements per entry, such as the length of an embedding row.

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
        arrays.check_shape(size, block)
        positions = arrays.as_indices(indices, size // block)
        arrays.check_ascending(positions, size // block)
        flat = arrays.as_values(values).reshape(-1)
        arrays.check_count(positions, flat, block)
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
        """Return a stream of arrays that are known to be valid.

        Args:
            size: Number of elements of the full vector.
            indices: Positions of the stored blocks, or None for a dense stream.
            values: Values in one dimension.
            block: Number of consecutive elements per entry.
            fill: Value of absent entries.
            scratch: Whether nothing else uses the arrays, so that a sum may overwrite them.
        """
        self = cls.__new__(cls)
        self._set(size, indices, values, block, fill, scratch=scratch)
        return self

    def like(
        self,
        indices: Indices | None,
        values: Values,
        *,
        size: int | None = None,
        fill: float | None = None,
        scratch: bool = True,
    ) -> Stream:
        """Return a stream of valid arrays with the block, size and fill of this one.

        `size` and `fill` replace those of this stream; see `unchecked` for `scratch`.
        """
        new = Stream.__new__(Stream)
        new._set(
            self.size if size is None else size,
            indices,
            values,
            self.block,
            self.fill if fill is None else fill,
            scratch=scratch,
        )
        return new

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
        """Return a stream of pairs in any order; values at the same index are added."""
        return cls.unchecked(*arrays.from_pairs(size, indices, values, block))

    @classmethod
    def from_dense(
        cls, array: Any, *, block: int | None = None, fill: float = 0.0
    ) -> Stream:
        """Return a stream of the entries of an array that differ from `fill`.

        Args:
            array: A NumPy array of any shape (in C order), a dense or sparse torch tensor, or a
                scipy sparse row or column. The stream is dense if that is no larger.
            block: Number of consecutive elements per entry. Rows of a sparse torch tensor, such
                as the gradient of an embedding, are blocks by default.
            fill: Value of absent entries.
        """
        if fill != 0 and (arrays.is_scipy(array) or is_sparse_tensor(array)):
            raise ValueError(
                f"from_dense: fill must be 0 for {type(array).__name__}, got {fill}"
            )
        if is_tensor(array):
            return cls.unchecked(*from_tensor(array, block=block, fill=fill))
        if arrays.is_scipy(array):
            return cls.unchecked(*arrays.from_scipy(array, block=block or 1))
        return cls.unchecked(*arrays.from_array(array, block=block or 1, fill=fill))

    @property
    def blocks(self) -> int:
        """Number of blocks of the full vector: size / block."""
        return self.size // self.block

    @property
    def nnz(self) -> int:
        """Number of stored entries (blocks)."""
        return self.blocks if self.raw_indices is None else len(self.raw_indices)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the values."""
        return self.raw_values.dtype

    @property
    def entry_bytes(self) -> int:
        """Number of bytes of the values of one entry."""
        return self.block * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Number of bytes of the arrays: nnz * (4 + entry_bytes), or all values if dense."""
        indices = 0 if self.raw_indices is None else self.raw_indices.nbytes
        return indices + self.raw_values.nbytes

    @property
    def density(self) -> float:
        """Nnz / blocks; 1 for the empty vector."""
        return self.nnz / self.blocks if self.blocks else 1.0

    @property
    def is_dense(self) -> bool:
        """Whether all values are stored, without indices."""
        return self.raw_indices is None

    @property
    def is_scratch(self) -> bool:
        """Whether a sum may overwrite the arrays: they are writable and not shared."""
        return self._scratch and self.raw_values.flags.writeable

    @property
    def indices(self) -> Indices:
        """Positions of the stored blocks, read-only; all positions if dense."""
        if self.raw_indices is None:
            return arrays.read_only_view(np.arange(self.blocks, dtype=np.uint32))
        return arrays.read_only_view(self.raw_indices)

    @property
    def values(self) -> Values:
        """Stored values, read-only; of shape (nnz, block) if block > 1."""
        shape = (-1,) if self.block == 1 else (self.nnz, self.block)
        return arrays.read_only_view(self.raw_values.reshape(shape))

    def to_dense(self) -> Values:
        """Return all `size` values as a new array."""
        return self.raw_values.copy() if self.is_dense else densify(self).raw_values

    def to_scipy(self) -> Any:
        """Return a scipy.sparse.csr_array of shape (1, size)."""
        from scipy.sparse import csr_array

        if self.block > 1 or self.is_dense or self.fill != 0:
            return csr_array(self.to_dense()[None])
        row = (self.values, self.indices.astype(np.int64), np.array([0, self.nnz]))
        return csr_array(row, shape=(1, self.size))

    def to_torch(self) -> Any:
        """Return a torch sparse COO tensor; blocks are rows of shape (blocks, block)."""
        return to_torch(self)

    def pairs(self) -> tuple[Indices, Values]:
        """Return the indices and flat values of a sparse stream."""
        assert self.raw_indices is not None, "a dense stream has no pairs"
        return self.raw_indices, self.raw_values

    def read_only(self) -> Stream:
        """Mark the arrays as shared, so that no sum overwrites them, and return the stream."""
        self._scratch = False
        return self

    def __add__(self, other: object) -> Stream:
        if not isinstance(other, Stream):
            return NotImplemented
        # Absent entries that are not zero must be added like the others.
        a, b = (x if x.fill == 0 else densify(x) for x in (self, other))
        return add(a, b).read_only()

    def __repr__(self) -> str:
        form = "dense" if self.is_dense else f"nnz={self.nnz}"
        block = f", block={self.block}" if self.block > 1 else ""
        return f"Stream(size={self.size}, {form}, {self.dtype}{block})"
