"""Rows that are spread over ranks, turned into columns that are spread over ranks.

Rank r of P gets the columns r, r + P, r + 2 P, ... of all rows: neighbours, which are often
equally popular, go to different ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.linear import NO_WEIGHTS, Csc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

    Doubles = NDArray[np.float64]
    Piece = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]

AT_ONCE = 1 << 20  # entries that travel together


@dataclass(frozen=True, eq=False)
class Share:
    """One rank's columns, and the labels of all rows.

    Attributes:
        columns: Column k here is column k * ranks + rank of the matrix.
        labels: Of all rows.
        weights: Of all rows, or none.
    """

    columns: Csc
    labels: Doubles
    weights: Doubles


def partition_columns(comm: Communicator, rows: Rows) -> Share:
    """This rank's columns; a collective call, in which all entries go to all ranks once."""
    owners, columns, values = [], [], []
    for first, (lengths, indices, found) in _pieces(comm, rows):
        mine = indices % comm.size == comm.rank
        numbers = np.arange(first, first + lengths.size, dtype=np.uint32)
        owners.append(np.repeat(numbers, lengths)[mine])
        columns.append((indices[mine] // comm.size).astype(np.uint32))
        values.append(found[mine].astype(np.float64))
    count = len(range(comm.rank, rows.features, comm.size))
    where = np.concatenate([np.empty(0, np.uint32), *columns])
    order = np.argsort(where, kind="stable")  # rows stay in order
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(where, minlength=count), out=indptr[1:])
    by_column = Csc(
        indptr,
        np.concatenate([np.empty(0, np.uint32), *owners])[order],
        np.concatenate([np.empty(0), *values])[order],
    )
    weighted = _gathered(comm, np.array([rows.weights is not None], np.float64)).any()
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    return Share(
        by_column,
        _gathered(comm, rows.labels),
        _gathered(comm, weights) if weighted else NO_WEIGHTS,
    )


def _gathered(comm: Communicator, mine: Doubles) -> Doubles:
    return np.concatenate(comm.allgather(mine))


def _pieces(comm: Communicator, rows: Rows) -> Iterator[tuple[int, Piece]]:
    """All rows of all ranks, some at a time, each with the number of its first row."""
    cuts = _cuts(rows)
    counts = _gathered(comm, np.array([len(cuts) - 1], np.float64)).astype(int)
    first = 0
    for root, count in enumerate(counts):
        for i in range(count):
            part = rows.take(cuts[i], cuts[i + 1]) if root == comm.rank else None
            piece = _sent(comm, part, root)
            yield first, piece
            first += piece[0].size


def _cuts(rows: Rows) -> list[int]:
    """Where to cut the rows into pieces."""
    cuts = [0]
    while cuts[-1] < len(rows):
        limit = rows.indptr[cuts[-1]] + AT_ONCE
        stop = int(np.searchsorted(rows.indptr, limit, side="right")) - 1
        cuts.append(min(max(stop, cuts[-1] + 1), len(rows)))
    return cuts


def _sent(comm: Communicator, part: Rows | None, root: int) -> Piece:
    """The root's piece on all ranks; whole numbers travel as float64, which has them all."""
    given: tuple[Any, Any, Any] = (None, None, None)
    if part is not None:
        given = np.diff(part.indptr), part.indices, part.values
    if comm.size == 1:
        return given
    lengths, indices, values = (
        comm.broadcast(None if x is None else x.astype(np.float64), root) for x in given
    )
    return lengths.astype(np.int64), indices.astype(np.int64), values
