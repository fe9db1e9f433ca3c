"""Cases of merging sorted streams.

Outputs are allocated beforehand, so that the kernel is timed and not the page faults.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml.bench.vectors import nonzero_integers, positions
from sparcml.kernels import _core
from sparcml.operations import OPS
from tests.kernels.reference import reduction as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from kernels.case import Arrays

    Pairs = tuple[NDArray[np.uint32], NDArray[np.float32]]

SUM = OPS["sum"].number
RANDOM, ANY = Floor(rate=300), Floor(rate=120)  # M entries/s
SPREAD = 100  # blocks of the vector for each entry of a stream
RUN = 64  # entries next to each other in clustered streams
STREAMS = 8


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """Two streams with more and more in common, then eight; `size` / 16 entries each."""
    nnz = size // 16
    yield _merge("merge, disjoint", *_overlapping(rng, nnz, 0.0), ANY)
    yield _merge("merge, random, 1 % shared", *_overlapping(rng, nnz, 0.01), RANDOM)
    yield _merge("merge, random, 50 % shared", *_overlapping(rng, nnz, 0.5), RANDOM)
    yield _merge("merge, identical", *_overlapping(rng, nnz, 1.0), ANY)
    short = _pairs(rng, positions(rng, SPREAD * nnz, nnz // 100))
    long = _pairs(rng, positions(rng, SPREAD * nnz, nnz))
    yield _merge("merge, one 100x shorter", long, short, ANY)
    yield _merge("merge, runs of 64", _clustered(rng, nnz), _clustered(rng, nnz), ANY)
    yield _merge_many(rng, nnz)


def _pairs(rng: np.random.Generator, indices: NDArray[np.uint32]) -> Pairs:
    return indices, nonzero_integers(rng, indices.size)


def _overlapping(rng: np.random.Generator, nnz: int, shared: float) -> tuple[Pairs, Pairs]:
    """Two streams that have this part of their indices in common."""
    both = round(shared * nnz)
    union = positions(rng, SPREAD * nnz, 2 * nnz - both)
    owner = np.repeat([0, 1, 2], [both, nnz - both, nnz - both])
    rng.shuffle(owner)
    return _pairs(rng, union[owner != 2]), _pairs(rng, union[owner != 1])


def _clustered(rng: np.random.Generator, nnz: int) -> Pairs:
    """Runs of neighbours; two such streams share about half of their runs."""
    runs = max(1, nnz // RUN)
    starts = positions(rng, 2 * runs, runs) * np.uint32(RUN)
    return _pairs(rng, np.add.outer(starts, np.arange(RUN)).ravel().astype(np.uint32))


def _merge(what: str, a: Pairs, b: Pairs, floor: Floor) -> Case:
    nnz = a[0].size + b[0].size
    oi, ov = np.zeros(nnz, np.uint32), np.zeros(nnz, np.float32)

    def run() -> Arrays:
        stored = _core.merge(SUM, *a, *b, 1, oi, ov)
        return oi[:stored], ov[:stored]

    want = reference.merge("sum", *a, *b)
    return Case(what, nnz, run, want, nnz, "M/s", "scipy", _scipy_sum(a, b), floor)


def _scipy_sum(a: Pairs, b: Pairs) -> Callable[[], object] | None:
    if find_spec("scipy") is None:
        return None
    from scipy.sparse import csr_array

    size = 1 + max(int(a[0][-1]), int(b[0][-1]))
    ends = [np.array([0, i.size], np.int32) for i, _ in (a, b)]
    # Its own index type, or every sum would begin with a conversion.
    rows = [
        csr_array((v, i.astype(np.int32), end), shape=(1, size))
        for (i, v), end in zip((a, b), ends, strict=True)
    ]
    for row in rows:
        row.has_canonical_format = True
    return lambda: rows[0] + rows[1]


def _merge_many(rng: np.random.Generator, nnz: int) -> Case:
    each = nnz * 2 // STREAMS
    parts = [_pairs(rng, positions(rng, SPREAD * each, each)) for _ in range(STREAMS)]
    indices, values = [i for i, _ in parts], [v for _, v in parts]
    total = each * STREAMS
    oi, ov = np.zeros(total, np.uint32), np.zeros(total, np.float32)

    def run() -> Arrays:
        stored = _core.merge_many(SUM, indices, values, 1, oi, ov)
        return oi[:stored], ov[:stored]

    want = reference.merge_many("sum", parts)
    copy = copy_of(np.concatenate([*indices, *(v.view(np.uint32) for v in values)]))
    return Case("merge_many, 8 streams", total, run, want, total, "M/s", "memcpy", copy)
