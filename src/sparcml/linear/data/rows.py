"""Labelled rows of a sparse matrix, the data type of all of `linear`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float32] | NDArray[np.float64]

MAX_FEATURES = 2**32 - 1  # the limit of a stream
ALL = -1


@dataclass(frozen=True, eq=False)
class Rows:
    """One rank's rows in compressed sparse row (CSR) format; arrays are never written to.

    Attributes:
        indptr: int64, one more than rows: row i has the entries indptr[i] to indptr[i + 1].
        indices: uint32 columns, strictly ascending in each row.
        values: float32 or float64, one per entry.
        labels: float64, one per row; positions in `label_names` if there are any.
        features: Columns of the matrix, the same on all ranks.
        first: Number of the first row here, counted over all ranks.
        total: Number of rows of all ranks; by default, these are all.
        weights: float64, one per row, or None for ones.
        zero_based: Whether indices start at 0 in the text that the rows were read from; None
            if they were not read from text. In `indices` they always start at 0.
        label_names: Labels of the text, ascending, if they are words; the same on all ranks.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: Floats
    labels: NDArray[np.float64]
    features: int
    first: int = 0
    total: int = ALL
    weights: NDArray[np.float64] | None = None
    zero_based: bool | None = None
    label_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        count = self.labels.size
        if self.total == ALL:
            object.__setattr__(self, "total", self.first + count)
        if not 0 <= self.first <= self.first + count <= self.total:
            raise ValueError(
                f"Rows: rows must be within 0 to {self.total}, got {self.first} to "
                f"{self.first + count}"
            )
        if not 0 <= self.features <= MAX_FEATURES:
            raise ValueError(
                f"Rows: features must be 0 to {MAX_FEATURES}, got {self.features}"
            )
        if self.indptr.size != count + 1:
            raise ValueError(
                f"Rows: indptr must have {count + 1} items for {count} labels, got "
                f"{self.indptr.size}"
            )
        if self.weights is not None and self.weights.size != count:
            raise ValueError(
                f"Rows: weights must have {count} items, as labels, got {self.weights.size}"
            )
        if self.indices.size != self.values.size:
            raise ValueError(
                f"Rows: values must have {self.indices.size} items, as indices, got "
                f"{self.values.size}"
            )

    def __len__(self) -> int:
        return self.labels.size

    @property
    def nnz(self) -> int:
        """Number of entries of the rows here."""
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def nbytes(self) -> int:
        """Number of bytes of the arrays."""
        arrays = (self.indptr, self.indices, self.values, self.labels, self.weights)
        return sum(array.nbytes for array in arrays if array is not None)

    @classmethod
    def of(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        features: int | None = None,
        weights: ArrayLike | None = None,
    ) -> Rows:
        """Convert a scipy sparse matrix or a dense array.

        A CSR matrix with sorted indices is not copied if it has 32-bit indices and float32 or
        float64 values.

        Args:
            X: One row per sample.
            y: Labels; zeros by default.
            features: Number of columns, if X lacks the last ones.
            weights: Row weights.

        Raises:
            DataError: If a value, label or weight is not finite.
        """
        if hasattr(X, "tocsr"):
            indptr, indices, values, shape = _from_sparse(X)
        else:
            indptr, indices, values, shape = _from_dense(X)
        if features is None:
            features = shape[1]
        elif features < shape[1]:
            raise ValueError(
                f"Rows.of: features must be >= {shape[1]}, the columns of X, got {features}"
            )
        labels = np.zeros(shape[0]) if y is None else np.asarray(y, np.float64)
        if labels.shape != (shape[0],):
            raise ValueError(
                f"Rows.of: y must have shape ({shape[0]},), got {labels.shape}"
            )
        row_weights = None if weights is None else np.asarray(weights, np.float64)
        rows = cls(indptr, indices, values, labels, features, weights=row_weights)
        rows.check()
        return rows

    def take(self, start: int, stop: int) -> Rows:
        """Return rows start to stop of those here, without a copy."""
        if not 0 <= start <= stop <= len(self):
            raise ValueError(
                f"Rows.take: start and stop must be within 0 to {len(self)}, got {start} and "
                f"{stop}"
            )
        low, high = self.indptr[start], self.indptr[stop]
        return replace(
            self,
            indptr=self.indptr[start : stop + 1] - low,
            indices=self.indices[low:high],
            values=self.values[low:high],
            labels=self.labels[start:stop],
            first=self.first + start,
            weights=None if self.weights is None else self.weights[start:stop],
        )

    def resized(self, features: int) -> Rows:
        """Return the rows with this number of columns, without entries of columns beyond."""
        inside = self.indices < features
        if inside.all():
            return replace(self, features=features)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
        return replace(
            self,
            indptr=before[self.indptr],
            indices=self.indices[inside],
            values=self.values[inside],
            features=features,
        )

    def part(self, rank: int, ranks: int) -> Rows:
        """Return a rank's part of rows that every rank has; parts differ by at most one row."""
        return self.take(rank * len(self) // ranks, (rank + 1) * len(self) // ranks)

    def check(self) -> None:
        """Check that all values, labels and weights are finite.

        Raises:
            DataError: If one is NaN or infinite; the message names the row.
        """
        at = _first_nonfinite(self.values)
        if at is not None:
            row = int(np.searchsorted(self.indptr, at, side="right")) - 1
            raise DataError(
                f"row {self.first + row}, column {self.indices[at]}: the value must be finite, "
                f"got {self.values[at]}"
            )
        for name, numbers in (("label", self.labels), ("weight", self.weights)):
            at = None if numbers is None else _first_nonfinite(numbers)
            if numbers is not None and at is not None:
                raise DataError(
                    f"row {self.first + at}: the {name} must be finite, got {numbers[at]}"
                )

    def to_scipy(self) -> Any:
        """Convert to a scipy CSR matrix, which shares the arrays if columns fit in 31 bits."""
        from scipy import sparse

        narrow = np.int32 if self.features <= np.iinfo(np.int32).max else np.int64
        indices = self.indices.view(np.int32) if narrow is np.int32 else self.indices
        shape = (len(self), self.features)
        return sparse.csr_matrix(
            (self.values, indices.astype(narrow, copy=False), self.indptr), shape
        )


def _first_nonfinite(numbers: Floats) -> int | None:
    """Return the position of the first NaN or infinity. Without one, nothing is allocated."""
    if np.isfinite(numbers.min(initial=0)) and np.isfinite(numbers.max(initial=0)):
        return None
    return int(np.flatnonzero(~np.isfinite(numbers))[0])


def _as_floats(values: NDArray[Any]) -> Floats:
    if np.iscomplexobj(values):
        raise DataError("Complex data not supported: values must be real")
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype == np.float32:
        return np.ascontiguousarray(values, np.float32)
    return np.ascontiguousarray(values, np.float64)


Compressed = tuple["NDArray[np.int64]", "NDArray[np.uint32]", "Floats", tuple[int, int]]


def _from_sparse(X: Any) -> Compressed:
    matrix = X.tocsr()
    if len(matrix.shape) != 2:
        raise ValueError(f"Rows.of: X must have two dimensions, got {len(matrix.shape)}")
    if not _ascending(matrix.indptr, matrix.indices):
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.shape[1] > MAX_FEATURES:
        raise ValueError(
            f"Rows.of: X must have at most {MAX_FEATURES} columns, got {matrix.shape[1]}"
        )
    indices = np.ascontiguousarray(matrix.indices)
    narrow = indices.dtype.itemsize == 4
    indices = indices.view(np.uint32) if narrow else indices.astype(np.uint32)
    indptr = np.ascontiguousarray(matrix.indptr, np.int64)
    count = indptr[-1]  # arrays may have unused room at the end
    return indptr, indices[:count], _as_floats(matrix.data[:count]), matrix.shape


def _ascending(indptr: NDArray[Any], indices: NDArray[Any]) -> bool:
    """Return whether columns ascend strictly in each row; scipy's flags may be outdated."""
    drops = np.flatnonzero(indices[1 : indptr[-1]] <= indices[: max(indptr[-1] - 1, 0)]) + 1
    return bool(np.isin(drops, indptr).all())


def _from_dense(X: Any) -> Compressed:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"Rows.of: X must have two dimensions, got {array.ndim}")
    if array.dtype.kind not in "biufc":
        array = array.astype(np.float64)
    row, column = np.nonzero(array)  # NaN is not zero
    indptr = np.zeros(array.shape[0] + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=array.shape[0]), out=indptr[1:])
    return indptr, column.astype(np.uint32), _as_floats(array[row, column]), array.shape
