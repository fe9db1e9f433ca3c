"""Cases of the kernels on dense vectors: scatter into, compact, sum, squeeze and expand.

Outputs are allocated beforehand, so that the kernel is timed and not the page faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml.bench.vectors import nonzero_integers, positions
from sparcml.kernels import _core
from sparcml.operations import OPS
from tests.kernels.reference import reduction as reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kernels.case import Arrays

SUM = OPS["sum"].number
COMPACT = Floor(over_peer=1.5)


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """On vectors of `size` values, of which 1 % are not zero where that matters."""
    stored = positions(rng, size, size // 100)
    dense = np.zeros(size, np.float32)
    dense[stored] = nonzero_integers(rng, stored.size)
    yield _scatter(size, stored, dense[stored])
    yield _compact(dense)
    yield _combine(nonzero_integers(rng, size), nonzero_integers(rng, size))
    crowded = nonzero_integers(rng, size)
    crowded[positions(rng, size, size // 2)] = 0
    yield from _squeeze(crowded)


def _scatter(size: int, indices: NDArray[np.uint32], values: NDArray[np.float32]) -> Case:
    ours, theirs = np.zeros(size, np.float32), np.zeros(size, np.float32)

    def run() -> Arrays:
        _core.scatter(SUM, ours, indices, values, 1)
        return (ours,)

    def run_once() -> Arrays:
        ours.fill(0)
        return run()

    def run_numpy() -> None:
        theirs[indices] += values

    want = np.zeros(size, np.float32)
    reference.scatter("sum", want, indices, values)
    what, nnz = "scatter, 1 %", indices.size
    args = (what, nnz, run, (want,), nnz, "M/s", "numpy", run_numpy)
    return Case(*args, output=run_once)


def _compact(dense: NDArray[np.float32]) -> Case:
    room = dense.size // 10
    oi, ov = np.zeros(room, np.uint32), np.zeros(room, np.float32)

    def run() -> Arrays:
        stored = _core.compact(dense, 0.0, 1, False, room, oi, ov)
        return oi[:stored], ov[:stored]

    want = reference.compact(dense)
    assert want is not None
    args = ("compact, 1 %", dense.size, run, want, dense.nbytes, "GB/s", "memcpy")
    return Case(*args, copy_of(dense), COMPACT)


def _combine(a: NDArray[np.float32], b: NDArray[np.float32]) -> Case:
    ours, theirs = np.zeros_like(a), np.zeros_like(a)

    def run() -> Arrays:
        _core.combine_dense(SUM, a, b, ours)
        return (ours,)

    want = (reference.combine_dense("sum", a, b),)
    args = ("dense sum", a.size, run, want, a.nbytes, "GB/s", "np.add")
    return Case(*args, lambda: np.add(a, b, out=theirs))


def _squeeze(dense: NDArray[np.float32]) -> Iterator[Case]:
    nnz = reference.count_nonfill(dense, bitwise=True)
    want = np.zeros(-(-dense.size // 64) * 8, np.uint8), np.zeros(nnz, np.float32)
    reference.bitmap_compact(dense, 0.0, *want)
    plane, found = np.zeros_like(want[0]), np.zeros_like(want[1])
    back = np.zeros_like(dense)

    def squeeze() -> Arrays:
        _core.bitmap_compact(dense, 0.0, nnz, plane, found)
        return plane, found

    def expand() -> Arrays:
        _core.bitmap_expand(*want, 0.0, back)
        return (back,)

    rest = (dense.nbytes, "GB/s", "memcpy", copy_of(dense))
    yield Case("squeeze, 50 %", dense.size, squeeze, want, *rest)
    yield Case("expand, 50 %", dense.size, expand, (dense,), *rest)
