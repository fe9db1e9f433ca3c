"""Cases of selecting the largest values, as a sparsifier's caller sees them.

Normal values first, beside a copy of the vector, torch and NumPy; then data that are hard
on a sample or on a comparison: each may take five times as long as the usual case.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml import Threshold, TopK
from tests.kernels.reference import selection as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from kernels.case import Arrays
    from sparcml import Sparsifier, Stream

    Values = NDArray[np.float32]

EXACT, BUCKETS, FUSED = Floor(over_peer=1.5), Floor(over_peer=3.0), Floor(over_peer=3.0)
HARD, HARD_BUCKETS = Floor(over_peer=7.5), Floor(over_peer=15.0)  # five times the usual
TORCH = Floor(over_peer=1 / 40)
RATIOS = (0.01, 0.001)
BUCKET = TopK(k=4, bucket=512)


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """On vectors of `size` values."""
    normal = rng.standard_normal(size, dtype=np.float32)
    for ratio in RATIOS:
        yield from _top_k(f"top {ratio:.1%}", normal, ratio)
    yield _bucket("top 4 of 512", normal, BUCKETS)
    yield _threshold(normal, 2.5758)
    yield from _taken(normal, rng.standard_normal(size, dtype=np.float32))
    for name, make in HARD_DATA.items():
        vector = make(rng, size)
        for ratio in RATIOS:
            yield _exact(f"top {ratio:.1%}, {name}", vector, ratio, HARD)
        yield _bucket(f"4 of 512, {name}", vector, HARD_BUCKETS)


def _normal(rng: np.random.Generator, size: int) -> Values:
    return rng.standard_normal(size, dtype=np.float32)


def _mixed(rng: np.random.Generator, size: int, share: float, value: float) -> Values:
    """Normal values, and this share of another value."""
    vector = _normal(rng, size)
    vector[rng.random(size, np.float32) < share] = value
    return vector


def _periodic(rng: np.random.Generator, size: int) -> Values:
    """The largest lie as far apart as the sampled places do."""
    vector = _normal(rng, size)
    vector[::1024] += 100
    return vector


HARD_DATA: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "heavy tail": lambda rng, n: _normal(rng, n) ** 5,
    "constant": lambda _, n: np.full(n, 1.5, np.float32),
    "two values": lambda rng, n: rng.integers(1, 3, n).astype(np.float32),
    "ascending": lambda rng, n: np.sort(np.abs(_normal(rng, n))),
    "descending": lambda rng, n: np.sort(np.abs(_normal(rng, n)))[::-1].copy(),
    "mostly zero": lambda rng, n: _mixed(rng, n, 0.9999, 0.0),
    "denormal": lambda rng, n: _normal(rng, n) * np.float32(1e-42),
    "half NaN": lambda rng, n: _mixed(rng, n, 0.5, np.nan),
    "periodic": _periodic,
}


def _arrays(stream: Stream) -> Arrays:
    """Values as bits: NaN is to equal NaN."""
    indices, values = stream.pairs()
    return indices, values.view(np.uint32)


def _bits(entries: tuple[NDArray[np.uint32], Values]) -> Arrays:
    return entries[0], entries[1].view(np.uint32)


def _select(
    what: str,
    vector: Values,
    sparsifier: Sparsifier,
    want: Arrays,
    floor: Floor | None,
    peer: tuple[str, Callable[[], object] | None],
) -> Case:
    def run() -> Arrays:
        return _arrays(sparsifier.select(vector))

    return Case(what, vector.size, run, want, vector.nbytes, "GB/s", *peer, floor)


def _exact(what: str, vector: Values, ratio: float, floor: Floor) -> Case:
    sparsifier = TopK(ratio)
    want = _bits(reference.top_k(vector, sparsifier.count(vector.size)))
    return _select(what, vector, sparsifier, want, floor, ("memcpy", copy_of(vector)))


def _top_k(what: str, vector: Values, ratio: float) -> Iterator[Case]:
    """Beside a copy and both peers."""
    sparsifier = TopK(ratio)
    k = sparsifier.count(vector.size)
    want = _bits(reference.top_k(vector, k))
    numpy_peer = ("argpartition", lambda: np.argpartition(np.abs(vector), -k)[-k:])
    peers: list[tuple[Floor | None, tuple[str, Callable[[], object] | None]]] = [
        (EXACT, ("memcpy", copy_of(vector))),
        (TORCH, ("torch.topk", _torch_top_k(vector, k))),
        (None, numpy_peer),
    ]
    for floor, peer in peers:
        yield _select(what, vector, sparsifier, want, floor if peer[1] else None, peer)


def _torch_top_k(vector: Values, k: int) -> Callable[[], object] | None:
    """On one core, and of magnitudes that are there already."""
    if find_spec("torch") is None:
        return None
    import torch

    magnitudes = torch.from_numpy(vector).abs()

    def run() -> Any:
        torch.set_num_threads(1)
        return torch.topk(magnitudes, k, sorted=False)

    return run


def _bucket(what: str, vector: Values, floor: Floor) -> Case:
    want = _bits(reference.bucket_top_k(vector, 4, 512))
    return _select(what, vector, BUCKET, want, floor, ("memcpy", copy_of(vector)))


def _threshold(vector: Values, value: float) -> Case:
    want = _bits(reference.at_least(vector, value))
    peer = ("memcpy", copy_of(vector))
    return _select("threshold, 1 %", vector, Threshold(value), want, None, peer)


def _taken(residual: Values, gradient: Values) -> Iterator[Case]:
    """The residual's update and the selection in one."""
    size, out = residual.size, np.zeros_like(residual)
    top = TopK(RATIOS[0])
    value = 2.5758 * 2**0.5
    for what, sparsifier, name, arguments in (
        ("residual + top 1 %", top, "top_k_with_residual", (top.count(size),)),
        ("residual + 4 of 512", BUCKET, "bucket_top_k_with_residual", (4, 512)),
        ("residual + threshold, 1 %", Threshold(value), "at_least_with_residual", (value,)),
    ):
        yield _take(what, sparsifier, name, arguments, (residual, gradient, out))


def _take(
    what: str,
    sparsifier: Sparsifier,
    name: str,
    arguments: tuple[float, ...],
    vectors: tuple[Values, Values, Values],
) -> Case:
    residual, gradient, out = vectors
    left = np.empty_like(residual)
    indices, values, _ = getattr(reference, name)(residual, gradient, *arguments, left)
    left[indices] = 0  # a threshold leaves that to its caller

    def run() -> Arrays:
        taken = sparsifier.select_with_residual(residual, gradient, out=out)
        return *_arrays(taken.sent), out

    want = (indices, values.view(np.uint32), left)
    work, copy = residual.nbytes, copy_of(residual)
    return Case(what, residual.size, run, want, work, "GB/s", "memcpy", copy, FUSED)
