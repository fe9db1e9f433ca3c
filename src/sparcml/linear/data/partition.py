"""Partitions of a matrix over ranks: the check of row partitions, and rows to columns.

In a column partition, rank r of P owns the columns r, r + P, r + 2 P, ...: neighbouring columns,
which are often equally frequent, go to different ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...communicator.collective_errors import allgather_numbers
from ...errors import MismatchError
from ..loops import EMPTY, Csc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

    Doubles = NDArray[np.float64]
    Chunk = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]

CHUNK_ENTRIES = 1 << 20  # entries per broadcast


def check_partition(comm: Communicator, rows: Rows, flag: bool = False) -> bool:
    """Check that the ranks' rows are the rows of one matrix, each once. Collective.

    Args:
        comm: The ranks.
        rows: This rank's rows.
        flag: A condition that is gathered along.

    Returns:
        Whether `flag` holds on all ranks.

    Raises:
        MismatchError: If they are not.
    """
    own = [rows.first, len(rows), rows.total, rows.features, rows.values.dtype.itemsize]
    table = allgather_numbers(comm, *own, flag)
    stops = table[:, 0] + table[:, 1]
    if (table[:, 2:-1] != table[0, 2:-1]).any():
        raise MismatchError(
            f"rank {comm.rank}: ranks differ in total rows, features or dtype of their rows"
        )
    if (table[:, 0] != [0.0, *stops[:-1]]).any() or stops[-1] != rows.total:
        raise MismatchError(
            f"rank {comm.rank}: rows must be numbered 0 to {rows.total} over the ranks, each "
            f"once and in order; this rank has rows {rows.first} to "
            f"{rows.first + len(rows)}"
        )
    return bool(table[:, -1].all())


@dataclass(frozen=True, eq=False)
class ColumnPartition:
    """One rank's columns, and the labels of all rows.

    Attributes:
        columns: Column k here is column k * ranks + rank of the matrix.
        labels: Labels of all rows.
        weights: Weights of all rows; empty if they all are 1.
    """

    columns: Csc
    labels: Doubles
    weights: Doubles


def partition_columns(comm: Communicator, rows: Rows) -> ColumnPartition:
    """Return this rank's columns. Collective; every entry is broadcast once."""
    row_chunks, column_chunks, value_chunks = [], [], []
    for first, (lengths, indices, values) in _broadcast_chunks(comm, rows):
        owned = indices % comm.size == comm.rank
        numbers = np.arange(first, first + lengths.size, dtype=np.uint32)
        row_chunks.append(np.repeat(numbers, lengths)[owned])
        column_chunks.append((indices[owned] // comm.size).astype(np.uint32))
        value_chunks.append(values[owned].astype(np.float64))
    count = len(range(comm.rank, rows.features, comm.size))
    columns = np.concatenate([np.empty(0, np.uint32), *column_chunks])
    order = np.argsort(columns, kind="stable")  # rows stay in order
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(columns, minlength=count), out=indptr[1:])
    by_column = Csc(
        indptr,
        np.concatenate([np.empty(0, np.uint32), *row_chunks])[order],
        np.concatenate([np.empty(0), *value_chunks])[order],
    )
    weighted = allgather_numbers(comm, rows.weights is not None).any()
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    return ColumnPartition(
        by_column,
        allgather_rows(comm, rows.labels),
        allgather_rows(comm, weights) if weighted else EMPTY,
    )


def allgather_rows(comm: Communicator, own: Doubles) -> Doubles:
    """Return one number per row of all ranks. Collective."""
    return np.concatenate(comm.allgather(own))


def _broadcast_chunks(comm: Communicator, rows: Rows) -> Iterator[tuple[int, Chunk]]:
    """Yield all rows of all ranks in chunks, each with the number of its first row."""
    cuts = _cuts(rows)
    counts = allgather_numbers(comm, len(cuts) - 1)[:, 0].astype(int)
    first = 0
    for root, count in enumerate(counts):
        for i in range(count):
            part = rows.take(cuts[i], cuts[i + 1]) if root == comm.rank else None
            chunk = _broadcast(comm, part, root)
            yield first, chunk
            first += chunk[0].size


def _cuts(rows: Rows) -> list[int]:
    """Return the first row of each chunk, and the end."""
    cuts = [0]
    while cuts[-1] < len(rows):
        limit = rows.indptr[cuts[-1]] + CHUNK_ENTRIES
        stop = int(np.searchsorted(rows.indptr, limit, side="right")) - 1
        cuts.append(min(max(stop, cuts[-1] + 1), len(rows)))
    return cuts


def _broadcast(comm: Communicator, part: Rows | None, root: int) -> Chunk:
    """Broadcast the root's chunk; float64 represents all of its integers exactly."""
    arrays: tuple[Any, Any, Any] = (None, None, None)
    if part is not None:
        arrays = np.diff(part.indptr), part.indices, part.values
    if comm.size == 1:
        return arrays
    lengths, indices, values = (
        comm.broadcast(None if x is None else x.astype(np.float64), root) for x in arrays
    )
    return lengths.astype(np.int64), indices.astype(np.int64), values
