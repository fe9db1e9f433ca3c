"""Values at random on an even grid, by the definition (`cpp/kernels/grid/grid.h`)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .random import FRACTION, LANES, shares

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.int8]

MAX_NORM, L2_NORM, GIVEN_NORM = range(3)
LARGE, SMALL = np.float32(2.0**64), np.float32(2.0**-64)
UNIT = np.float32(1 << FRACTION)


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


def sum_of(values: Floats, power: int = 1) -> float:
    """Of powers, in 8 lanes and then a tree; NaN does not count."""
    lanes = np.zeros((-(-values.size // 8), 8))
    lanes.ravel()[: values.size] = np.where(np.isnan(values), 0, values)
    a = np.add.accumulate(np.vstack((np.zeros(8), lanes**power)))[-1]
    return float(((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])))


def moments(values: Floats) -> tuple[float, float, float, int]:
    """The largest magnitude, sum, sum of squares and number of what is not NaN."""
    numbers = values[~np.isnan(values)]
    largest = float(np.abs(numbers).max(initial=0))
    with np.errstate(invalid="ignore"):
        return largest, sum_of(values), sum_of(values, 2), numbers.size


def _norm(values: Floats, norm: int, scale: float) -> np.float32:
    if norm == GIVEN_NORM:
        return np.float32(scale)
    if norm == L2_NORM:
        with np.errstate(over="ignore"):
            return np.float32(np.sqrt(sum_of(values, 2)))
    return np.float32(np.abs(values[~np.isnan(values)]).max(initial=0))


def factor_of(norm: np.float32) -> np.float32:
    """Brings an absurd norm near 1."""
    if norm == 0 or SMALL <= norm <= LARGE:
        return np.float32(1)
    return LARGE if norm < SMALL else SMALL


def levels(
    values: Floats, norm: np.float32, s: int, bits: int, seed: int, first: int
) -> Codes:
    """The codes of one bucket, whose words begin at `first`."""
    factor, most = factor_of(norm), np.float32(s) * UNIT
    with np.errstate(all="ignore"):
        times = np.float32(s) / (norm * factor) * UNIT if norm > 0 else np.float32(0)
        x = np.where(np.isfinite(values), values * factor * times, np.float32(np.nan))
    if np.isinf(norm):
        x = np.where(np.isfinite(values), np.float32(0), values)
    x = np.clip(x, -most, most)
    fixed = np.rint(np.nan_to_num(x)).astype(np.int32)
    codes = fixed + shares(seed, first, values.size) >> FRACTION
    return np.where(np.isnan(x), -(1 << bits - 1), codes).astype(np.int8)


def in_buckets(
    values: Floats,
    bucket: int,
    bits: int,
    norm: int,
    scale: float,
    coded: Callable[[Floats, np.float32, int], Codes],
) -> Bytes:
    """Norms of all buckets, then their codes, packed."""
    norms, codes = [], [np.empty(0, np.int8)]
    words = -(-bucket // LANES) * LANES
    for k, at in enumerate(range(0, values.size, bucket)):
        part = values[at : at + bucket]
        norms.append(_norm(part, norm, scale))
        codes.append(coded(part, norms[-1], k * words))
    head = np.array(norms, np.float32).view(np.uint8)
    return np.concatenate((head, pack(np.concatenate(codes), bits)))


def norms_and_codes(
    code: Bytes, count: int, bucket: int, bits: int
) -> tuple[Floats, Floats, Codes]:
    """Of each value: its bucket's norm and factor, and its code."""
    at = 4 * -(-count // bucket)
    norms = code[:at].copy().view(np.float32)
    factors = np.array([factor_of(n) for n in norms], np.float32)
    norms, factors = (np.repeat(a, bucket)[:count] for a in (norms, factors))
    return norms, factors, unpack(code[at:], count, bits)


def to_grid(
    values: Floats, bucket: int, s: int, bits: int, norm: int, scale: float, seed: int
) -> Bytes:
    """Norms of all buckets, then the codes, packed."""

    def coded(part: Floats, found: np.float32, first: int) -> Codes:
        return levels(part, found, s, bits, seed, first)

    return in_buckets(values, bucket, bits, norm, scale, coded)


def from_grid(code: Bytes, count: int, bucket: int, s: int, bits: int) -> Floats:
    """Each code times its bucket's step."""
    norms, factors, codes = norms_and_codes(code, count, bucket, bits)
    with np.errstate(all="ignore"):
        x = codes.astype(np.float32) * (norms * factors / np.float32(s))
        rare = np.clip(x / factors, -abs(norms), abs(norms))
    x = np.where(factors == 1, x, rare)
    x[(codes == -(1 << bits - 1)) | np.isnan(x)] = np.nan
    return x
