"""Values at random on an even grid, by the definition (`cpp/kernels/grid/grid.h`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .random import GROUP, WORDS, halves

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.int8]

LARGEST, LENGTH, GIVEN = range(3)
LARGE, SMALL = np.float32(2.0**64), np.float32(2.0**-64)


def pack(codes: Codes, bits: int) -> Bytes:
    """The lowest bits of each, lowest first, without gaps."""
    plane = codes.view(np.uint8)[:, None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(plane, bitorder="little")


def unpack(data: Bytes, count: int, bits: int) -> Codes:
    """The signed numbers of so many bits."""
    plane = np.unpackbits(data, count=count * bits, bitorder="little")
    codes = plane.reshape(count, bits) @ (1 << np.arange(bits))
    sign = 1 << bits - 1
    return ((codes ^ sign) - sign).astype(np.int8)


def squares(values: Floats) -> float:
    """The sum of squares, in 8 lanes and then a tree; NaN does not count."""
    lanes = np.zeros((-(-values.size // 8), 8))
    lanes.ravel()[: values.size] = np.where(np.isnan(values), 0, values)
    a = np.add.accumulate(np.vstack((np.zeros(8), lanes * lanes)))[-1]
    return float(((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])))


def _norm(values: Floats, norm: int, scale: float) -> np.float32:
    if norm == GIVEN:
        return np.float32(scale)
    if norm == LENGTH:
        with np.errstate(over="ignore"):
            return np.float32(np.sqrt(squares(values)))
    return np.float32(np.abs(values[~np.isnan(values)]).max(initial=0))


def _factor(norm: np.float32) -> np.float32:
    """Brings an absurd norm near 1."""
    if norm == 0 or SMALL <= norm <= LARGE:
        return np.float32(1)
    return LARGE if norm < SMALL else SMALL


def levels(
    values: Floats, norm: np.float32, s: int, bits: int, seed: int, first: int
) -> Codes:
    """The codes of one bucket, whose words begin at `first`."""
    fraction = min(16, 21 - s.bit_length())
    unit = np.float32(1 << fraction)
    factor, most = _factor(norm), np.float32(s) * unit
    with np.errstate(all="ignore"):
        times = np.float32(s) / (norm * factor) * unit if norm > 0 else np.float32(0)
        x = np.where(np.isfinite(values), values * factor * times, np.float32(np.nan))
    if np.isinf(norm):
        x = np.where(np.isfinite(values), np.float32(0), values)
    x = np.clip(x, -most, most)
    fixed = np.rint(np.nan_to_num(x)).astype(np.int32)
    codes = fixed + halves(seed, first, values.size, fraction) >> fraction
    return np.where(np.isnan(x), -(1 << bits - 1), codes).astype(np.int8)


def to_grid(
    values: Floats, bucket: int, s: int, bits: int, norm: int, scale: float, seed: int
) -> Bytes:
    """Norms of all buckets, then the codes, packed."""
    norms, codes = [], [np.empty(0, np.int8)]
    words = -(-bucket // GROUP) * WORDS
    for k, at in enumerate(range(0, values.size, bucket)):
        part = values[at : at + bucket]
        norms.append(_norm(part, norm, scale))
        codes.append(levels(part, norms[-1], s, bits, seed, k * words))
    head = np.array(norms, np.float32).view(np.uint8)
    return np.concatenate((head, pack(np.concatenate(codes), bits)))


def from_grid(code: Bytes, count: int, bucket: int, s: int, bits: int) -> Floats:
    """Each code times its bucket's step."""
    at = 4 * -(-count // bucket)
    norms = code[:at].copy().view(np.float32)
    codes = unpack(code[at:], count, bits)
    factors = np.array([_factor(n) for n in norms], np.float32)
    with np.errstate(all="ignore"):
        steps = norms * factors / np.float32(s)
        norms, factors, steps = (
            np.repeat(a, bucket)[:count] for a in (norms, factors, steps)
        )
        x = codes.astype(np.float32) * steps
        slow = factors != 1
        rare = np.clip(x / factors, -abs(norms), abs(norms))
    x = np.where(slow, rare, x)
    x[(codes == -(1 << bits - 1)) | np.isnan(x)] = np.nan
    return x
