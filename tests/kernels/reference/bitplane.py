"""Codes of one bit per value, and of integer multiples of a step, defined in NumPy."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bits = NDArray[np.uint8]


def to_onebit(values: Floats, bucket: int, mean: bool = False) -> tuple[Floats, Bits]:
    """Return two levels per bucket, split at zero or at its mean, and one bit per value."""
    split = _split_mean if mean else _split_zero
    parts = [split(v) for v in _buckets(values, bucket)]
    levels = np.array([levels for levels, _ in parts], np.float32).ravel()
    return levels, _packed([bits for _, bits in parts])


def to_sign(values: Floats, bucket: int) -> tuple[Floats, Bits]:
    """Return the mean magnitude per bucket, and one bit per value, set if it is >= 0."""
    scales = [_mean(_sum(np.abs(v)), v.size) for v in _buckets(values, bucket)]
    return np.array(scales, np.float32), np.packbits(values >= 0, bitorder="little")


def from_bitplane(levels: Floats, bits: Bits, count: int, bucket: int) -> Floats:
    """Return the level that each bit selects from the two of its bucket."""
    selected = np.unpackbits(bits, bitorder="little", count=count)
    return np.take(levels, 2 * (np.arange(count) // bucket) + selected)


def to_integer(values: Floats, step: float, max_multiple: int) -> Bits | None:
    """Return value / step + max_multiple in the fewest bits; None if not a valid multiple."""
    width, finite = (2 * max_multiple).bit_length(), np.isfinite(values)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.where(finite, values, np.float32(0)) / np.float32(step)
        k = np.rint(x)
    tolerance = np.float32(
        min(0.25, (max_multiple * max_multiple + 2 * max_multiple) / 2**24)
    )
    if (np.abs(k) > max_multiple).any() or (np.abs(x - k) > tolerance).any():
        return None
    codes = np.where(finite, k + max_multiple, 2**width - 1).astype(np.uint32)
    bits = codes[:, None] >> np.arange(width, dtype=np.uint32) & 1
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little")


def from_integer(packed: Bits, count: int, step: float, max_multiple: int) -> Floats | None:
    """Return the values of a code of `to_integer`; None if a code is above the maximum."""
    width = (2 * max_multiple).bit_length()
    bits = np.unpackbits(packed, bitorder="little", count=count * width)
    codes = bits.reshape(count, width).astype(np.int64) @ (1 << np.arange(width))
    nan = codes == 2**width - 1
    if (codes[~nan] > 2 * max_multiple).any():
        return None
    values = (codes - max_multiple).astype(np.float32) * np.float32(step)
    return np.where(nan, np.float32(np.nan), values)


def _split_zero(v: Floats) -> tuple[list[np.float32], NDArray[np.bool_]]:
    bits = v >= 0
    ones = int(np.count_nonzero(bits))
    low = _mean(_sum(np.where(bits, 0, v)), v.size - ones)
    return [low, _mean(_sum(np.where(bits, v, 0)), ones)], bits


def _split_mean(v: Floats) -> tuple[list[np.float32], NDArray[np.bool_]]:
    mean = _mean(_sum(v), v.size)
    with np.errstate(all="ignore"):
        center = np.float64(mean)
        deviation = _sum(np.abs(v.astype(np.float64) - center)) / v.size
        return [_level(center - deviation), _level(center + deviation)], v >= mean


def _sum(v: NDArray[np.floating]) -> np.float64:
    """Sum in double precision: value i is added to lane i mod 8, then the lanes by a tree."""
    rows = np.zeros((-(-v.size // 8), 8))
    rows.reshape(-1)[: v.size] = v
    with np.errstate(all="ignore"):
        lane = np.add.reduce(rows, axis=0)  # adds row by row
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
