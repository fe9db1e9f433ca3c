"""Only the columns that some row has: the weights of the others never change.

Data of 16.6 M columns may use one million of them. Numbered anew, those few lie side by side
in memory: their weights fit in cache, and the gaps between the indices of a gradient, which
travel, are shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.column_index import INACTIVE, ColumnBitmap
from ...stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ...kernels.linear import LazyWeights
    from .rows import Rows


@dataclass(frozen=True, eq=False)
class ActiveColumns:
    """The columns of a matrix that are not all zero, and their new numbers.

    Attributes:
        features: Columns of the matrix.
        columns: Those in use, ascending; their places are the new numbers.
    """

    features: int
    columns: NDArray[np.uint32]
    _used: ColumnBitmap

    @classmethod
    def of(cls, comm: Communicator, rows: Rows, model: LazyWeights) -> ActiveColumns:
        """Those of all ranks' rows, and those where the model is not zero; collective."""
        used = ColumnBitmap(rows.features)
        used.add(rows.indices)
        used.add(_moving(model))
        used.count()
        if comm.size > 1:
            mine = used.columns()
            ones = np.ones(mine.size, np.float32)
            total = comm.allreduce(Stream.unchecked(rows.features, mine, ones), op="max")
            used.add(total.indices)
            used.count()
        return cls(rows.features, used.columns(), used)

    def rows(self, rows: Rows) -> Rows:
        """The same rows in new numbers; columns that are not in use are left out."""
        places = self._used.positions(rows.indices)
        narrow = replace(rows, indices=places, features=self.columns.size)
        if places.max(initial=0) != INACTIVE:
            return narrow
        known = places != INACTIVE
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        return replace(
            narrow,
            indptr=before[rows.indptr],
            indices=places[known],
            values=rows.values[known],
        )

    def narrow(self, model: LazyWeights) -> LazyWeights:
        """The model in new numbers."""
        return _each(model, lambda numbers: numbers[self.columns])

    def widen(self, model: LazyWeights) -> LazyWeights:
        """The model in the old numbers, which `narrow` has made; zero elsewhere."""

        def spread(numbers: NDArray[Any]) -> NDArray[Any]:
            wide = np.zeros((self.features, numbers.shape[1]), numbers.dtype)
            wide[self.columns] = numbers
            return wide

        return _each(model, spread)


@dataclass(frozen=True, eq=False)
class ColumnIndex:
    """What came of a search for unused columns.

    Attributes:
        given: The rows that were searched.
        used: The columns in use, or None if they are none, or too many to be worth it.
        rows: What to work on: the rows in new numbers, or those given.
    """

    given: Rows
    used: ActiveColumns | None
    rows: Rows

    @classmethod
    def among(cls, comm: Communicator, rows: Rows, model: LazyWeights) -> ColumnIndex:
        """ColumnIndex the rows of all ranks; a collective call."""
        used = ActiveColumns.of(comm, rows, model)
        if not 0 < 2 * used.columns.size <= rows.features:
            return cls(rows, None, rows)
        return cls(rows, used, used.rows(rows))

    def was_of(self, rows: Rows) -> bool:
        """Whether these rows, but for labels and weights, are those that were searched."""
        same = (rows.indptr, rows.indices, rows.values)
        given = (self.given.indptr, self.given.indices, self.given.values)
        return all(mine is its for mine, its in zip(same, given, strict=True))


def _each(
    model: LazyWeights, change: Callable[[NDArray[Any]], NDArray[Any]]
) -> LazyWeights:
    """A change of what a model has for each column; adaptive ones have two numbers."""

    def changed(array: NDArray[Any], width: int = 1) -> NDArray[Any]:
        return change(array.reshape(-1, width)).reshape(-1) if array.size else array

    return model._replace(
        weights=changed(model.weights, 2 if model.adaptive else 1),
        velocity=changed(model.velocity),
        last=changed(model.last),
    )


def _moving(model: LazyWeights) -> NDArray[np.uint32]:
    """Columns whose weight is not zero, or will not stay so."""
    width = 2 if model.adaptive else 1
    weights, velocity = (
        np.empty(0, np.uint32) if array.size == 0 else Stream.from_dense(array).indices
        for array in (model.weights, model.velocity)
    )
    return np.concatenate([weights // np.uint32(width), velocity])
