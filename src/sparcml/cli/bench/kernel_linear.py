"""Cases of a batch's gradient, beside reading the batch once.

A batch of 1000 rows as in Webspam (3728 of 16.6 M features in a row) and URL (116 of 3.2 M).
Features are as popular as words: the j-th in 1 / (j + 10) of the rows, at random places. A
smaller `size` makes rows and dimension smaller together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcml import kernels
from sparcml.cli.bench.kernel_case import Case, Floor
from sparcml.cli.bench.vectors import whole_numbers
from sparcml.kernels import linear as loops
from sparcml.kernels.reference import linear as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from sparcml.cli.bench.kernel_case import Arrays

FULL = 1 << 24  # the size at which the dimensions are those of the data sets
BATCH = 1000
SETS = {"Webspam": (16_609_143, 3728), "URL": (3_231_961, 116)}
WITHIN = Floor(over_peer=3.0)
SQUARED = 3  # the loss whose gradients of whole numbers are whole


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """One for each data set."""
    share = min(1.0, size / FULL)
    for name, (features, each) in SETS.items():
        rows = _rows(rng, int(features * share), max(1, int(each * share)))
        yield _gradient(f"gradient, {name}-like", rows, int(features * share))


def _rows(rng: np.random.Generator, features: int, each: int) -> loops.Csr:
    """Popular features by the inverse of the sum of 1 / (j + 10), then at random places."""
    place = rng.permutation(features).astype(np.uint32)
    spread = np.log((features + 10) / 10)
    columns = []
    for _ in range(BATCH):
        popular = 10 * np.expm1(spread * rng.random(2 * each))
        drawn = np.unique(place[np.minimum(popular.astype(np.int64), features - 1)])
        kept = rng.permutation(drawn.size)[:each]
        columns.append(np.sort(drawn[kept]))
    indptr = np.concatenate([[0], np.cumsum([c.size for c in columns])]).astype(np.int64)
    indices = np.concatenate(columns)
    labels = rng.integers(-4, 5, BATCH).astype(np.float64)
    return loops.Csr(indptr, indices, whole_numbers(rng, indices.size), labels)


def _gradient(what: str, rows: loops.Csr, features: int) -> Case:
    weights = np.zeros(features, np.float32)
    none = np.empty(0, np.float32)
    numbers = np.array([1.0, 0.0, 0.0, 0.0])
    model = loops.Weights(
        weights, none, np.empty(0, np.uint32), np.empty(0), np.empty(0), numbers
    )
    batch = np.arange(BATCH, dtype=np.int64)

    def run() -> Arrays:
        found = loops.gradient(rows, batch, SQUARED, 1.0, model)
        return found.indices[:-1], found.values[:-1]

    indices, values = reference.combined(rows, batch, -rows.labels)
    want = indices, values.astype(np.float32)
    nnz = rows.indices.size
    read = _reading(rows.indices, rows.values)
    return Case(what, nnz, run, want, nnz, "M/s", "reading once", read, WITHIN)


def _reading(
    indices: NDArray[np.uint32], values: NDArray[np.float32]
) -> Callable[[], object]:
    """All entries read, and next to nothing done with them."""
    return lambda: (np.bitwise_or.reduce(indices), kernels.count(values))
