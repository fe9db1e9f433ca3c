"""How long rows are, by which rates are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data.rows import Rows

AT_ONCE = 1 << 20  # entries, so that their squares take little memory


def squared_row_norms(rows: Rows) -> NDArray[np.float64]:
    """Of this rank's rows, times their weights; in float64, whatever the values are."""
    found = np.zeros(len(rows))
    start = 0
    while start < len(rows):
        limit = rows.indptr[start] + AT_ONCE
        last = int(np.searchsorted(rows.indptr, limit, side="right")) - 1
        stop = min(max(last, start + 1), len(rows))
        low, high = rows.indptr[start], rows.indptr[stop]
        squares = np.square(rows.values[low:high], dtype=np.float64)
        ends = rows.indptr[start : stop + 1] - low
        full = np.diff(ends) > 0  # of an empty row reduceat would give the next one's first
        found[start:stop][full] = np.add.reduceat(squares, ends[:-1][full])
        start = stop
    return found if rows.weights is None else found * rows.weights
