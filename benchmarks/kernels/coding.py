"""Cases of the kernels that code indices, check sums and shorten floats.

Rates of index codes count raw indices, 4 bytes each, whatever their code is long.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml import kernels
from sparcml.bench.vectors import positions
from tests.kernels.reference import coding as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Indices = NDArray[np.uint32]

DENSITIES = (10.0, 1.0, 0.1)  # per cent
GAP = Floor(rate=1.0)
CHECKED = 1 << 16  # bytes of the checksum that the slow reference is asked about


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """Index codes at each density, then what works on values."""
    for density in DENSITIES:
        indices = positions(rng, size, max(1, round(size * density / 100)))
        yield from _gap(indices, size, density)
    yield _crc(rng.integers(0, 256, 4 * size, np.uint8))
    values = rng.standard_normal(size).astype(np.float32)
    for bfloat in (False, True):
        yield from _half(values, bfloat)


def _gap(indices: Indices, blocks: int, density: float) -> Iterator[Case]:
    nnz, raw = indices.size, indices.nbytes
    r, nbytes = kernels.gap_plan(indices)
    code, back = np.zeros(nbytes, np.uint8), np.zeros(nnz, np.uint32)

    def encode() -> tuple[NDArray[np.uint8]]:
        kernels.gap_plan(indices)  # its length has to be known first, as on the wire
        return (kernels.gap_encode(indices, r, code),)

    def decode() -> tuple[Indices]:
        kernels._core.gap_decode(want[0], nnz, blocks, back)
        return (back,)

    want = (reference.gap_encode(indices, r),)
    copy = copy_of(indices)
    rest = ("GB/s", "memcpy", copy, GAP, nbytes / nnz)
    yield Case(f"gap encode, {density:g} %", nnz, encode, want, raw, *rest)
    yield Case(f"gap decode, {density:g} %", nnz, decode, (indices,), raw, *rest)


def _crc(data: NDArray[np.uint8]) -> Case:
    def crc(part: NDArray[np.uint8]) -> tuple[NDArray[np.uint32]]:
        return (np.array([kernels.crc32c(part)], np.uint32),)

    start, raw = data[:CHECKED], memoryview(data.data)
    want = (np.array([reference.crc32c(start)], np.uint32),)
    args = ("crc32c", data.size, lambda: crc(data), want, data.size, "GB/s")
    return Case(*args, "zlib.crc32", lambda: zlib.crc32(raw), output=lambda: crc(start))


def _half(values: NDArray[np.float32], bfloat: bool) -> Iterator[Case]:
    name = "bfloat16" if bfloat else "float16"
    want = reference.to_half(values, bfloat)
    bits, back = np.zeros_like(want), np.zeros_like(values)
    theirs = np.zeros(values.size, np.float16)
    size, nbytes = values.size, values.nbytes

    def narrow() -> tuple[NDArray[np.uint16]]:
        return (kernels.to_half(values, bfloat, bits),)

    def widen() -> tuple[NDArray[np.float32]]:
        return (kernels.from_half(want, bfloat, back),)

    wide = (reference.from_half(want, bfloat),)
    peers: list[Callable[[], object]] = [
        lambda: np.copyto(theirs, values, "same_kind"),
        lambda: np.copyto(back, theirs),
    ]
    if bfloat:
        peers = [copy_of(values)] * 2  # NumPy has none
    peer = "memcpy" if bfloat else "numpy"
    yield Case(f"to {name}", size, narrow, (want,), nbytes, "GB/s", peer, peers[0])
    yield Case(f"from {name}", size, widen, wide, nbytes, "GB/s", peer, peers[1])
