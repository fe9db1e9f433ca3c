"""Shuffling, mini-batches and validation splits that do not depend on the number of ranks.

A row's position in the order of an epoch follows from the seed, the epoch and the row's number;
batch t holds the rows at positions t * batch_size to (t + 1) * batch_size. Each rank therefore
finds its rows of a batch by itself, with memory for its own rows only.

Positions are a permutation of the rows: a Feistel network on pairs (row // b, row % b), where
each round adds to one number of the pair a hash of the other. A position beyond the last row is
permuted again until it is inside; that is rare, as there are hardly more pairs than rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...communicator.collective_errors import allgather_numbers
from ...errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

    Wide = NDArray[np.uint64]

ROUNDS = 6
CHUNK = 1 << 16  # rows per pass, so that all rounds stay in cache
# Epoch numbers that no training has, one for each of the two validation splits.
SPLIT_OF_FIT, SPLIT_OF_ESTIMATORS = 2**32 - 1, 2**32


def permuted_positions(
    rows: NDArray[np.int64], total: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Return the positions of some of `total` rows in the order of an epoch."""
    drawn = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)
    keys = drawn.astype(np.uint64, copy=False)
    low = math.isqrt(max(total - 1, 0)) + 1
    high = -(-total // low)
    out = np.empty(rows.size, np.int64)
    for start in range(0, rows.size, CHUNK):
        chunk = rows[start : start + CHUNK].astype(np.uint64)
        chunk = _permute(chunk, low, high, keys)
        while (outside := np.flatnonzero(chunk >= total)).size:
            chunk[outside] = _permute(chunk[outside], low, high, keys)
        out[start : start + CHUNK] = chunk
    return out


def _permute(x: Wide, low: int, high: int, keys: Wide) -> Wide:
    left, right = np.divmod(x, np.uint64(low))
    sizes = (high, low)
    pair = [left, right]
    for number, key in enumerate(keys):
        changed, size = number % 2, np.uint64(sizes[number % 2])
        pair[changed] += _hash(pair[1 - changed], key) % size
        pair[changed] -= np.where(pair[changed] >= size, size, np.uint64(0))
    return pair[0] * np.uint64(low) + pair[1]


def _hash(x: Wide, key: np.uint64) -> Wide:
    """Mix all bits of x and key: the finalizer of splitmix64."""
    x = (x ^ key) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def batches(
    first: int,
    count: int,
    total: int,
    batch_size: int,
    seed: int | None,
    epoch: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a rank's rows in the order of an epoch, and the offsets of its batches.

    Args:
        first: Number of this rank's first row among all.
        count: Number of this rank's rows.
        total: Number of rows of all ranks.
        batch_size: Rows per batch, over all ranks.
        seed: Seed of the shuffle; None keeps the given order.
        epoch: Epoch, from 0.

    Returns:
        The rows, counted from the first one here, and the offset of each batch among them,
        with the end.
    """
    rows = np.arange(count, dtype=np.int64)
    offsets = np.minimum(
        np.arange(-(-total // batch_size) + 1, dtype=np.int64) * batch_size, total
    )
    if seed is None:
        return rows, np.clip(offsets - first, 0, count)
    positions = permuted_positions(rows + first, total, seed, epoch)
    if count == total:  # positions are a permutation of these very rows
        order = np.empty(count, np.int64)
        order[positions] = rows
        return order, offsets
    order = np.argsort(positions)
    return order, np.searchsorted(positions[order], offsets)


def validation_mask(
    first: int, count: int, total: int, fraction: float, seed: int, epoch: int
) -> NDArray[np.bool_]:
    """Return which of a rank's rows are in the validation set, for any number of ranks.

    Args:
        first: Number of this rank's first row among all.
        count: Number of this rank's rows.
        total: Number of rows of all ranks.
        fraction: Fraction of the rows in the validation set.
        seed: Random seed.
        epoch: Shuffle to draw from: SPLIT_OF_FIT or SPLIT_OF_ESTIMATORS.

    Raises:
        DataError: If the validation set or the training set would be empty.
    """
    wanted = round(fraction * total)
    if not 0 < wanted < total:
        raise DataError(
            f"validation fraction {fraction:g} of {total} rows is {wanted} rows; both the "
            f"validation set and the training set need rows"
        )
    numbers = np.arange(first, first + count, dtype=np.int64)
    return permuted_positions(numbers, total, seed, epoch) < wanted


def train_validation_split(
    comm: Communicator, rows: Rows, fraction: float, seed: int
) -> tuple[Rows, Rows]:
    """Return training rows and a random fraction of validation rows. Collective.

    Raises:
        DataError: If one of the sets would be empty.
    """
    chosen = validation_mask(
        rows.first, len(rows), rows.total, fraction, seed, SPLIT_OF_FIT
    )
    return select_rows(comm, rows, ~chosen), select_rows(comm, rows, chosen)


def select_rows(comm: Communicator, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Return some rows of all ranks, with new row numbers. Collective."""
    lengths = np.diff(rows.indptr)
    entries = np.repeat(mask, lengths)
    indptr = np.zeros(int(mask.sum()) + 1, np.int64)
    np.cumsum(lengths[mask], out=indptr[1:])
    counts = allgather_numbers(comm, indptr.size - 1)[:, 0].astype(np.int64)
    return replace(
        rows,
        indptr=indptr,
        indices=rows.indices[entries],
        values=rows.values[entries],
        labels=rows.labels[mask],
        first=int(counts[: comm.rank].sum()),
        total=int(counts.sum()),
        weights=None if rows.weights is None else rows.weights[mask],
    )
