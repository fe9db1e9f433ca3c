"""Vectors for the tests of sums: random ones, and the values that go wrong."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Pair = tuple[Array, Array]

ODD = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-45, -1e-45, 5e-324, 3.4e38, 1e308)
NANS = {
    np.dtype(np.float32): (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF),
    np.dtype(np.float64): (
        0x7FF8000000000000,
        0xFFF8000000000000,
        0x7FF0000000000001,
        0xFFFFFFFFFFFFFFFF,
    ),
}
LAST = 2**32 - 2  # the greatest index


def as_fill(fill: float, dtype: DTypeLike) -> float:
    """The same fill, or an integer for integers, whose bits may be those of a NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f" or np.isfinite(fill):
        return fill if dtype.kind == "f" else int(fill)
    return int(np.iinfo(dtype).min if np.isinf(fill) else np.iinfo(dtype).max)


def odd(dtype: DTypeLike) -> Array:
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        signaling = 0x7F800001 if dtype.itemsize == 4 else 0x7FF0000000000001
        return np.array([0, 1, -1, 2, low, low + 1, high, high - 1, signaling], dtype)
    nans = np.array(NANS[dtype], f"u{dtype.itemsize}").view(dtype)
    with np.errstate(over="ignore"):
        return np.concatenate([np.array(ODD).astype(dtype), nans])


def values(
    rng: np.random.Generator, size: int, dtype: DTypeLike, oddness: float = 0.3
) -> Array:
    """Random values, some of them odd."""
    plain = (rng.standard_normal(size) * 9).astype(dtype)
    pool = odd(dtype)
    bits = f"u{np.dtype(dtype).itemsize}"
    picks = pool.view(bits)[rng.integers(0, pool.size, size)]
    return np.where(rng.random(size) < oddness, picks, plain.view(bits)).view(dtype)


def entries(
    rng: np.random.Generator,
    nnz: int,
    size: int,
    dtype: DTypeLike,
    block: int = 1,
    oddness: float = 0.3,
) -> Pair:
    """A random stream of about nnz entries below size."""
    indices = np.unique(rng.integers(0, size, nnz, dtype=np.uint32))
    return indices, values(rng, indices.size * block, dtype, oddness)


def same_bits(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype
    bits = f"u{got.itemsize}"
    np.testing.assert_array_equal(got.view(bits), want.view(bits))


def same_entries(got: Pair | None, want: Pair | None) -> None:
    assert got is not None
    assert want is not None
    np.testing.assert_array_equal(got[0], want[0])
    same_bits(got[1], want[1])


GUARD = 128  # bytes on either side, more than any vector loop runs ahead


def guarded(size: int, dtype: DTypeLike) -> Array:
    """An array in the midst of bytes that nobody may write to."""
    nbytes = size * np.dtype(dtype).itemsize
    return np.full(nbytes + 2 * GUARD, 0xA5, np.uint8)[GUARD : GUARD + nbytes].view(dtype)


def intact(array: Array) -> bool:
    """Whether the bytes around a guarded array are as they were."""
    around = array.base
    assert isinstance(around, np.ndarray)
    outside = np.append(around[:GUARD], around[GUARD + array.nbytes :])
    return bool((outside == 0xA5).all()) and outside.size == 2 * GUARD


def overlaps(nnz: int) -> dict[str, Pair]:
    """Two sets of indices that overlap in every way."""
    i = np.arange(nnz, dtype=np.uint32)
    third = nnz // 3 + 1
    runs = i // third * (2 * third) + i % third
    return {
        "identical": (i * 3, i * 3),
        "interleaved": (i * 2, i * 2 + 1),
        "apart": (i, i + nnz),
        "apart, b first": (i + nnz, i),
        "runs": (runs, runs + third),
        "a empty": (i[:0], i),
        "b empty": (i, i[:0]),
        "a short": (i[nnz // 2 : nnz // 2 + 2], i),
        "b short": (i, np.append(i[:1], i[-1:] + 1) if nnz else i),
        "half the same": (np.unique(np.append(i[: nnz // 2], i * 2)), i),
        "at the end": (LAST - i[::-1], LAST - i[::-1] * 2),
    }
