"""Rows to learn from and rows to be judged by: the same ones for any number of ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...communicator.collective_errors import gather
from ...errors import DataError
from .shuffle import permuted_positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

NO_PASS = 2**32 - 1  # an order of its own, which no pass over the rows has


def train_validation_split(
    comm: Communicator, rows: Rows, share: float, seed: int
) -> tuple[Rows, Rows]:
    """(the others, a random share of all ranks' rows); a collective call.

    Raises:
        DataError: If one of both would be empty.
    """
    count = round(share * rows.total)
    if not 0 < count < rows.total:
        raise DataError(
            f"{share:g} of {rows.total} rows are {count} to hold out: there must be some, and "
            f"some left"
        )
    numbers = np.arange(rows.first, rows.first + len(rows), dtype=np.int64)
    chosen = permuted_positions(numbers, rows.total, seed, NO_PASS) < count
    return subset(comm, rows, ~chosen), subset(comm, rows, chosen)


def subset(comm: Communicator, rows: Rows, which: NDArray[np.bool_]) -> Rows:
    """Some of all ranks' rows, numbered anew; a collective call."""
    lengths = np.diff(rows.indptr)
    entries = np.repeat(which, lengths)
    indptr = np.zeros(int(which.sum()) + 1, np.int64)
    np.cumsum(lengths[which], out=indptr[1:])
    counts = gather(comm, indptr.size - 1)[:, 0].astype(np.int64)
    return replace(
        rows,
        indptr=indptr,
        indices=rows.indices[entries],
        values=rows.values[entries],
        labels=rows.labels[which],
        first=int(counts[: comm.rank].sum()),
        total=int(counts.sum()),
        weights=None if rows.weights is None else rows.weights[which],
    )
