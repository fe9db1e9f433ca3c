"""Cases of the kernels on dense vectors: scatter into, compact, sum, encode and decode.

Outputs are allocated beforehand, so that the kernel is timed and not the page faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml import Stream, wire
from sparcml.bench.vectors import nonzero_integers, positions
from sparcml.kernels import _core
from sparcml.operations import OPS
from sparcml.wire.header import SIZE
from tests.kernels.reference import reduction as reference
from tests.kernels.reference.coding import bitmap_encode

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
    yield from _message(crowded)


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


def _message(dense: NDArray[np.float32]) -> Iterator[Case]:
    """Write the sections of a message with a bitmap, and read them, checksums included."""
    entries = reference.compact(dense, bitwise=True)
    assert entries is not None
    plane, values = bitmap_encode(entries[0], dense.size), entries[1].view(np.uint8)
    vector, tag = Stream.unchecked(dense.size, None, dense), wire.Tag(call=0, sequence=1)
    back = Stream.unchecked(dense.size, None, np.zeros_like(dense))
    message, _ = wire.encode(vector, tag)
    header = wire.Header.read(message)

    def encode() -> Arrays:
        return (wire.encode(vector, tag)[0][SIZE:],)

    def decode() -> Arrays:
        wire.decode_into(back, 0, message, header, dense.size)
        return (back.raw_values,)

    want = (np.concatenate([plane, values]),)
    rest = (dense.nbytes, "GB/s", "memcpy", copy_of(dense))
    yield Case("encode message, 50 %", dense.size, encode, want, *rest)
    yield Case("decode message, 50 %", dense.size, decode, (dense,), *rest)
