"""Values in one bit each, in NumPy."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bits = NDArray[np.uint8]


def to_onebit(values: Floats, bucket: int, mean: bool = False) -> tuple[Floats, Bits]:
    """Two levels for each bucket, split at zero or at its mean, and a bit a value."""
    split = _split_mean if mean else _split_zero
    parts = [split(v) for v in _buckets(values, bucket)]
    levels = np.array([levels for levels, _ in parts], np.float32).ravel()
    return levels, _packed([bits for _, bits in parts])


def to_sign(values: Floats, bucket: int) -> tuple[Floats, Bits]:
    """The mean magnitude of each bucket, and a bit a value: not below zero."""
    scales = [_mean(_sum(np.abs(v)), v.size) for v in _buckets(values, bucket)]
    return np.array(scales, np.float32), np.packbits(values >= 0, bitorder="little")


def from_bitplane(levels: Floats, bits: Bits, count: int, bucket: int) -> Floats:
    """The level of its bucket that each bit chooses."""
    chosen = np.unpackbits(bits, bitorder="little", count=count)
    return np.take(levels, 2 * (np.arange(count) // bucket) + chosen)


def _split_zero(v: Floats) -> tuple[list[np.float32], NDArray[np.bool_]]:
    bits = v >= 0
    ones = int(np.count_nonzero(bits))
    low = _mean(_sum(np.where(bits, 0, v)), v.size - ones)
    return [low, _mean(_sum(np.where(bits, v, 0)), ones)], bits


def _split_mean(v: Floats) -> tuple[list[np.float32], NDArray[np.bool_]]:
    mean = _mean(_sum(v), v.size)
    with np.errstate(all="ignore"):
        wide = np.float64(mean)
        spread = _sum(np.abs(v.astype(np.float64) - wide)) / v.size
        return [_level(wide - spread), _level(wide + spread)], v >= mean


def _sum(v: NDArray[np.floating]) -> np.float64:
    """In double precision: value i in lane i mod 8, then lanes by a tree."""
    rows = np.zeros((-(-v.size // 8), 8))
    rows.reshape(-1)[: v.size] = v
    with np.errstate(all="ignore"):
        lane = np.add.reduce(rows, axis=0)  # row by row
        even = (lane[0] + lane[4]) + (lane[2] + lane[6])
        odd = (lane[1] + lane[5]) + (lane[3] + lane[7])
        return np.float64(even + odd)


def _mean(total: np.float64, count: int) -> np.float32:
    return _level(total / max(count, 1))


def _level(x: np.float64) -> np.float32:
    with np.errstate(all="ignore"):
        return np.float32(np.nan) if np.isnan(x) else np.float32(x)


def _buckets(values: Floats, bucket: int) -> Iterator[Floats]:
    return (values[at : at + bucket] for at in range(0, values.size, bucket))


def _packed(bits: list[NDArray[np.bool_]]) -> Bits:
    return np.packbits(np.concatenate([np.empty(0, bool), *bits]), bitorder="little")
