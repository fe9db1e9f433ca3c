"""Cases of a batch's gradient, beside reading the batch once.

Batches of 1000 rows as in Webspam (3728 of 16.6 M features in a row) and URL (116 of 3.2 M),
each a bit later than the one before, as in training: rows come from memory, not from a cache.
Features are as popular as words: the j-th in (j + 10)^-1.1 of the rows, at random places. Once
with all columns, and once with those alone that some row has, as SGD works. A smaller `size`
makes rows and dimension smaller together.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from kernels.case import Case, Floor
from sparcml import kernels
from sparcml.bench.vectors import nonzero_integers
from sparcml.linear import loops
from sparcml.linear.data.column_index import ColumnBitmap
from tests.linear import reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kernels.case import Arrays

FULL = 1 << 24  # the size at which the dimensions are those of the data sets
BATCH = 1000
SETS = {"Webspam": (16_609_143, 3728, 4), "URL": (3_231_961, 116, 40)}  # and batches
WITHIN = Floor(over_peer=3.0)
SQUARED = 3  # the loss whose gradients of whole numbers are whole
POWER = -0.1  # of j + 10 in the integral of (j + 10)^-1.1


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """Two for each data set."""
    share = min(1.0, size / FULL)
    for name, (features, each, batches) in SETS.items():
        columns = int(features * share)
        count = BATCH * (batches if share == 1.0 else 1)
        rows = _rows(rng, columns, max(1, int(each * share)), count)
        yield _gradient(f"gradient, {name}-like", rows, columns)
        used = ColumnBitmap(columns)
        used.add(rows.indices)
        narrow = rows._replace(indices=_places(used, rows))
        yield _gradient(f"gradient, {name}-like, columns in use", narrow, used.count())


def _places(used: ColumnBitmap, rows: loops.Csr) -> NDArray[np.uint32]:
    used.count()
    return used.positions(rows.indices)


def _rows(rng: np.random.Generator, features: int, each: int, count: int) -> loops.Csr:
    """Popular features by the inverse of the distribution, then at random places."""
    place = rng.permutation(features).astype(np.uint32)
    first, last = 10**POWER, (features + 10) ** POWER
    columns = []
    for _ in range(count):
        popular = (first + (last - first) * rng.random(3 * each)) ** (1 / POWER) - 10
        drawn = np.unique(place[np.minimum(popular.astype(np.int64), features - 1)])
        kept = rng.permutation(drawn.size)[:each]
        columns.append(np.sort(drawn[kept]))
    indptr = np.concatenate([[0], np.cumsum([c.size for c in columns])]).astype(np.int64)
    indices = np.concatenate(columns)
    labels = rng.integers(-4, 5, count).astype(np.float64)
    return loops.Csr(indptr, indices, nonzero_integers(rng, indices.size), labels)


def _gradient(what: str, rows: loops.Csr, features: int) -> Case:
    weights = np.zeros(features, np.float32)
    none = np.empty(0, np.float32)
    numbers = np.array([1.0, 0.0, 0.0, 0.0])
    model = loops.LazyWeights(
        weights, none, np.empty(0, np.uint32), np.empty(0), np.empty(0), numbers
    )
    batches = np.split(np.arange(rows.labels.size), rows.labels.size // BATCH)
    ours, theirs = cycle(batches), cycle(batches[len(batches) // 2 :] + batches)

    def gradient(batch: NDArray[np.int64]) -> Arrays:
        one, ends = np.ones(1), np.array([0, batch.size])
        steps = loops.SGDSteps(rows, batch, ends, one, SQUARED, 0.0, model, shares=one)
        return steps.gradient().pairs()

    indices, values = reference.combine_rows(rows, batches[0], -rows.labels[batches[0]])
    want = indices, values.astype(np.float32)
    nnz = rows.indices.size // len(batches)
    return Case(
        what,
        nnz,
        lambda: gradient(next(ours)),
        want,
        nnz,
        "M/s",
        "reading once",
        lambda: _read(rows, next(theirs)),
        WITHIN,
        output=lambda: gradient(batches[0]),
    )


def _read(rows: loops.Csr, batch: NDArray[np.int64]) -> object:
    """All entries of a batch read, and next to nothing done with them."""
    entries = slice(rows.indptr[batch[0]], rows.indptr[batch[-1] + 1])
    return np.bitwise_or.reduce(rows.indices[entries]), kernels.count_nonfill(
        rows.values[entries]
    )
