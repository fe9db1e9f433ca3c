"""An index of the columns that some row has: the weights of all others never change.

Of 16.6 M columns a data set may use one million. With new numbers these are contiguous: their
weights fit in cache, and the gaps between the indices of a gradient encode in fewer bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels import bitmap_decode
from ...stream import Stream
from .._core import column_positions, count_columns, mark_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..loops import LazyWeights
    from .rows import Rows

    Columns = NDArray[np.uint32]

MIN_FEATURES = 1 << 18  # columns whose weights exceed a cache
INACTIVE = 2**32 - 1


class ColumnBitmap:
    """A set of columns, stored in one and a half bits per column of the matrix.

    A bitmap marks the active columns, and one count per 64 columns gives their positions.

    Args:
        size: Number of columns of the matrix.
    """

    def __init__(self, size: int) -> None:
        self._size, self._count = size, 0
        self._bitmap = np.zeros(-(-size // 64), np.uint64)
        self._before = np.zeros(self._bitmap.size, np.uint32)

    def add(self, columns: Columns) -> None:
        """Add columns in any order, with repetitions; call `count` afterwards."""
        mark_columns(columns, self._bitmap)

    def count(self) -> int:
        """Update the counts that positions are computed from; return the number of columns."""
        self._count = count_columns(self._bitmap, self._before)
        return self._count

    def columns(self) -> Columns:
        """Return the active columns, ascending."""
        return bitmap_decode(self._bitmap.view(np.uint8), self._count, self._size)

    def positions(self, columns: Columns) -> Columns:
        """Return the positions of columns among the active ones, or `INACTIVE`."""
        out = np.empty(columns.size, np.uint32)
        column_positions(columns, self._bitmap, self._before, out)
        return out


@dataclass(frozen=True, eq=False)
class ActiveColumns:
    """The columns of a matrix that are not all zero, with new numbers.

    Attributes:
        features: Columns of the matrix.
        columns: Active columns, ascending; a column's position is its new number.
    """

    features: int
    columns: NDArray[np.uint32]
    _bitmap: ColumnBitmap

    @classmethod
    def of(
        cls, comm: Communicator, rows: Rows, model: LazyWeights | None = None
    ) -> ActiveColumns:
        """Find the columns of all ranks' rows and of a model's nonzeros. Collective."""
        bitmap = ColumnBitmap(rows.features)
        bitmap.add(rows.indices)
        if model is not None:
            bitmap.add(nonzero_columns(model))
        bitmap.count()
        if comm.size > 1:
            own = bitmap.columns()
            ones = np.ones(own.size, np.float32)
            union = comm.allreduce(Stream.unchecked(rows.features, own, ones), op="max")
            bitmap.add(union.indices)
            bitmap.count()
        return cls(rows.features, bitmap.columns(), bitmap)

    def rows(self, rows: Rows) -> Rows:
        """Return the rows with new column numbers, without inactive columns."""
        positions = self._bitmap.positions(rows.indices)
        compressed = replace(rows, indices=positions, features=self.columns.size)
        if positions.max(initial=0) != INACTIVE:
            return compressed
        active = positions != INACTIVE
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(active)])
        return replace(
            compressed,
            indptr=before[rows.indptr],
            indices=positions[active],
            values=rows.values[active],
        )

    @property
    def are_few(self) -> bool:
        """Whether new numbers are worth it: there are columns, but at most half of all."""
        return 0 < 2 * self.columns.size <= self.features

    def compress(self, model: LazyWeights) -> LazyWeights:
        """Return the model of the active columns."""
        return map_columns(model, lambda values: values[self.columns])

    def expand(self, model: LazyWeights) -> LazyWeights:
        """Return the model of all columns from a compressed one; others are zero."""

        def scatter(values: NDArray[Any]) -> NDArray[Any]:
            full = np.zeros((self.features, values.shape[1]), values.dtype)
            full[self.columns] = values
            return full

        return map_columns(model, scatter)


@dataclass(frozen=True, eq=False)
class ColumnIndex:
    """The result of a search for active columns.

    Attributes:
        source: The rows that were searched.
        active: The active columns, or None if there are none, or too many to be worth it.
        rows: The rows to train on: with new column numbers, or the source.
    """

    source: Rows
    active: ActiveColumns | None
    rows: Rows

    @classmethod
    def build(cls, comm: Communicator, rows: Rows, model: LazyWeights) -> ColumnIndex:
        """Search the rows of all ranks. Collective."""
        active = ActiveColumns.of(comm, rows, model)
        if not active.are_few:
            return cls(rows, None, rows)
        return cls(rows, active, active.rows(rows))

    def covers(self, rows: Rows) -> bool:
        """Return whether these are the searched rows, up to labels and weights."""
        ours = (self.source.indptr, self.source.indices, self.source.values)
        theirs = (rows.indptr, rows.indices, rows.values)
        return all(a is b for a, b in zip(ours, theirs, strict=True))


def map_columns(
    model: LazyWeights, change: Callable[[NDArray[Any]], NDArray[Any]]
) -> LazyWeights:
    """Change the arrays that have numbers per column; adaptive weights have two."""

    def changed(array: NDArray[Any], width: int = 1) -> NDArray[Any]:
        return change(array.reshape(-1, width)).reshape(-1) if array.size else array

    return model._replace(
        weights=changed(model.weights, 2 if model.adaptive else 1),
        velocity=changed(model.velocity),
        last=changed(model.last),
    )


def nonzero_columns(model: LazyWeights) -> NDArray[np.uint32]:
    """Return the columns whose weight or velocity is not zero, ascending."""
    weights, velocity = (
        np.empty(0, np.uint32) if array.size == 0 else Stream.from_dense(array).indices
        for array in (model.weights, model.velocity)
    )
    if velocity.size:
        return np.union1d(weights, velocity)
    if not model.adaptive:
        return weights
    columns = weights // np.uint32(2)  # of the weight and of its squared gradients
    return columns[np.flatnonzero(np.diff(columns, prepend=np.uint32(2**32 - 1)))]
