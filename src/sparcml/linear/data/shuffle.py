"""Which rows a batch has, the same for any number of ranks.

Every row has a place in the order of an epoch, a number that follows from the seed, the
epoch and the row alone; batch t has the rows at places t * batch to (t + 1) * batch. So a
rank finds its own rows of each batch without the others, in memory for its own rows.

Places are a permutation of the rows, a Feistel network on pairs of numbers (row // b, row % b):
each round adds to one of both a hash of the other. Where that leads beyond the last row it
goes on until it comes back, which is rare as there are hardly more pairs than rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Wide = NDArray[np.uint64]

ROUNDS = 6
PIECE = 1 << 16  # rows at a time, so that all steps stay in cache


def permuted_positions(
    rows: NDArray[np.int64], total: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Where these of `total` rows are in the order of an epoch."""
    drawn = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)
    keys = drawn.astype(np.uint64, copy=False)
    low = math.isqrt(max(total - 1, 0)) + 1
    high = -(-total // low)
    out = np.empty(rows.size, np.int64)
    for start in range(0, rows.size, PIECE):
        piece = rows[start : start + PIECE].astype(np.uint64)
        piece = _permuted(piece, low, high, keys)
        while (beyond := np.flatnonzero(piece >= total)).size:
            piece[beyond] = _permuted(piece[beyond], low, high, keys)
        out[start : start + PIECE] = piece
    return out


def _permuted(x: Wide, low: int, high: int, keys: Wide) -> Wide:
    left, right = np.divmod(x, np.uint64(low))
    sizes = (high, low)
    pair = [left, right]
    for turn, key in enumerate(keys):
        changed, size = turn % 2, np.uint64(sizes[turn % 2])
        pair[changed] += _hashed(pair[1 - changed], key) % size
        pair[changed] -= np.where(pair[changed] >= size, size, np.uint64(0))
    return pair[0] * np.uint64(low) + pair[1]


def _hashed(x: Wide, key: np.uint64) -> Wide:
    """Bits that depend on all bits of x and key: the end of splitmix64."""
    x = (x ^ key) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def batches(
    first: int,
    count: int,
    total: int,
    batch: int,
    seed: int | None,
    epoch: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A rank's rows in the order of an epoch, and where each batch begins among them.

    Args:
        first: The number of this rank's first row, among all.
        count: How many it has.
        total: Rows of all ranks.
        batch: Rows of a batch, over all ranks.
        seed: Of the order; None for the order in which the rows are.
        epoch: From 0.

    Returns:
        Rows, counted from the first here, and the beginnings of all batches, and the end.
    """
    rows = np.arange(count, dtype=np.int64)
    edges = np.minimum(np.arange(-(-total // batch) + 1, dtype=np.int64) * batch, total)
    if seed is None:
        return rows, np.clip(edges - first, 0, count)
    where = permuted_positions(rows + first, total, seed, epoch)
    if count == total:  # places are a permutation of these very rows
        order = np.empty(count, np.int64)
        order[where] = rows
        return order, edges
    order = np.argsort(where)
    return order, np.searchsorted(where[order], edges)
