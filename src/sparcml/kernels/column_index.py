"""Index of the active columns of a sparse matrix: those that some row has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import _core
from .coding import bitmap_decode

INACTIVE = 2**32 - 1

Columns = NDArray[np.uint32]


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
        _core.mark_columns(columns, self._bitmap)

    def count(self) -> int:
        """Update the counts that positions are computed from; return the number of columns."""
        self._count = _core.count_columns(self._bitmap, self._before)
        return self._count

    def columns(self) -> Columns:
        """Return the active columns, ascending."""
        return bitmap_decode(self._bitmap.view(np.uint8), self._count, self._size)

    def positions(self, columns: Columns) -> Columns:
        """Return the positions of columns among the active ones, or `INACTIVE`."""
        out = np.empty(columns.size, np.uint32)
        _core.column_positions(columns, self._bitmap, self._before, out)
        return out
