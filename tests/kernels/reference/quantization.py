"""Codes of a few bits per value, defined in NumPy; `cpp/kernels` draws their layouts.

`grid` rounds stochastically to a uniform grid, `table` to a table of levels, and `natural`
to powers of two.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .random import FRACTION, LANES, fractions, words

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.int8]

MAX_NORM, L2_NORM, GIVEN_NORM = range(3)
LARGE, SMALL = np.float32(2.0**64), np.float32(2.0**-64)
ONE, UNIT = np.float32(1), np.float32(1 << FRACTION)


def to_grid(
    values: Floats, bucket: int, s: int, bits: int, norm: int, scale: float, seed: int
) -> Bytes:
    """Return the norms of all buckets, then the packed codes."""

    def encode(part: Floats, bucket_norm: np.float32, first: int) -> Codes:
        return grid_codes(part, bucket_norm, s, bits, seed, first)

    return _encode_buckets(values, bucket, bits, norm, scale, encode)


def grid_codes(
    values: Floats, norm: np.float32, s: int, bits: int, seed: int, first: int
) -> Codes:
    """Return the codes of one bucket, whose random words start at `first`."""
    factor, limit = _rescaling(norm), np.float32(s) * UNIT
    with np.errstate(all="ignore"):
        multiplier = np.float32(s) / (norm * factor) * UNIT if norm > 0 else np.float32(0)
        x = np.where(np.isfinite(values), values * factor * multiplier, np.float32(np.nan))
    x = np.clip(x, -limit, limit)
    fixed = np.rint(np.nan_to_num(x)).astype(np.int32)
    codes = fixed + fractions(seed, first, values.size) >> FRACTION
    return np.where(np.isnan(x), -(1 << bits - 1), codes).astype(np.int8)


def from_grid(code: Bytes, count: int, bucket: int, s: int, bits: int) -> Floats:
    """Return each code times the step of its bucket."""
    norms, factors, codes = _decode_buckets(code, count, bucket, bits)
    with np.errstate(all="ignore"):
        x = codes.astype(np.float32) * (norms * factors / np.float32(s))
        rescaled = np.clip(x / factors, -abs(norms), abs(norms))
    x = np.where(factors == 1, x, rescaled)
    x[(codes == -(1 << bits - 1)) | np.isnan(x)] = np.nan
    return x


def to_table(
    values: Floats,
    bucket: int,
    levels: Floats,
    bits: int,
    norm: int,
    scale: float,
    seed: int,
) -> Bytes:
    """Return the norms of all buckets, then the packed codes."""

    def encode(part: Floats, bucket_norm: np.float32, first: int) -> Codes:
        return table_codes(part, bucket_norm, levels, bits, seed, first)

    return _encode_buckets(values, bucket, bits, norm, scale, encode)


def table_codes(
    values: Floats, norm: np.float32, levels: Floats, bits: int, seed: int, first: int
) -> Codes:
    """Return the codes of one bucket, whose random words start at `first`."""
    factor, magnitude = _rescaling(norm), np.abs(values)
    with np.errstate(all="ignore"):
        multiplier = ONE / (norm * factor) if norm > 0 else np.float32(0)
        r = np.where(
            np.isfinite(values), magnitude * factor * multiplier, np.float32(np.nan)
        )
    nan, r = np.isnan(r), np.clip(np.nan_to_num(r), np.float32(0), ONE)
    j = np.searchsorted(levels[:-1], r, side="right") - 1
    fixed = np.rint((r - levels[j]) * (ONE / np.diff(levels))[j] * UNIT).astype(np.int32)
    up = fixed + fractions(seed, first, values.size) >> FRACTION
    level = j + np.minimum(up, 1)
    codes = np.where(values < 0, -level, level)
    return np.where(nan, -(1 << bits - 1), codes).astype(np.int8)


def from_table(code: Bytes, count: int, bucket: int, levels: Floats, bits: int) -> Floats:
    """Return the level of each code times the norm of its bucket."""
    norms, factors, codes = _decode_buckets(code, count, bucket, bits)
    table: Floats = np.full(129, np.nan, np.float32)
    table[: levels.size] = levels
    with np.errstate(all="ignore"):
        x: Floats = table[np.abs(codes.astype(np.int32))] * (norms * factors)
        x /= factors
    x[codes < 0] *= -1
    x[(codes == -(1 << bits - 1)) | np.isnan(x)] = np.nan
    return x


def to_natural(values: Floats, seed: int) -> Bytes:
    """Return one exponent per value, then one sign bit per value."""
    x = values.view(np.uint32).astype(np.int64)
    magnitude = x & 0x7FFFFFFF
    nan = magnitude > 0x7F800000
    mantissas = words(seed, 0, values.size) >> np.uint32(9)
    exponent = np.where(nan, 0, magnitude + mantissas >> 23)
    negative = nan | (exponent > 0) & (x >> 31 > 0)
    signs = np.packbits(negative, bitorder="little")
    return np.concatenate((exponent.astype(np.uint8), signs))


def from_natural(code: Bytes, count: int) -> Floats:
    """Return powers of two; a zero with a sign stands for NaN."""
    exponent = code[:count].astype(np.uint32)
    sign = np.unpackbits(code[count:], count=count, bitorder="little").astype(np.uint32)
    bits = exponent << np.uint32(23) | sign << np.uint32(31)
    bits[bits == 1 << 31] = 0x7FC00000
    return bits.view(np.float32)


def moments(values: Floats) -> tuple[float, float, float, int]:
    """Return the max magnitude, sum, sum of squares and count of values except NaN."""
    numbers = values[~np.isnan(values)]
    largest = float(np.abs(numbers).max(initial=0))
    with np.errstate(invalid="ignore"):
        return largest, power_sum(values), power_sum(values, 2), numbers.size


def power_sum(values: Floats, power: int = 1) -> float:
    """Return the sum of powers of values except NaN, in 8 lanes and then by a tree."""
    lanes = np.zeros((-(-values.size // 8), 8))
    lanes.ravel()[: values.size] = np.where(np.isnan(values), 0, values)
    a = np.add.accumulate(np.vstack((np.zeros(8), lanes**power)))[-1]
    return float(((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])))


def pack(codes: Codes, bits: int) -> Bytes:
    """Return the lowest `bits` of each code, lowest bit first, without gaps."""
    plane = codes.view(np.uint8)[:, None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(plane, bitorder="little")


def unpack(data: Bytes, count: int, bits: int) -> Codes:
    """Return `count` signed integers of `bits` bits each."""
    plane = np.unpackbits(data, count=count * bits, bitorder="little")
    codes = plane.reshape(count, bits) @ (1 << np.arange(bits))
    sign = 1 << bits - 1
    return ((codes ^ sign) - sign).astype(np.int8)


def _encode_buckets(
    values: Floats,
    bucket: int,
    bits: int,
    norm: int,
    scale: float,
    encode: Callable[[Floats, np.float32, int], Codes],
) -> Bytes:
    norms, codes = [], [np.empty(0, np.int8)]
    words_per_bucket = -(-bucket // LANES) * LANES
    for k, at in enumerate(range(0, values.size, bucket)):
        part = values[at : at + bucket]
        norms.append(_norm(part, norm, scale))
        codes.append(encode(part, norms[-1], k * words_per_bucket))
    head = np.array(norms, np.float32).view(np.uint8)
    return np.concatenate((head, pack(np.concatenate(codes), bits)))


def _decode_buckets(
    code: Bytes, count: int, bucket: int, bits: int
) -> tuple[Floats, Floats, Codes]:
    """Return the norm and rescaling of the bucket of each value, and the codes."""
    at = 4 * -(-count // bucket)
    norms = code[:at].copy().view(np.float32)
    factors = np.array([_rescaling(n) for n in norms], np.float32)
    norms, factors = (np.repeat(a, bucket)[:count] for a in (norms, factors))
    return norms, factors, unpack(code[at:], count, bits)


def _norm(values: Floats, norm: int, scale: float) -> np.float32:
    if norm == GIVEN_NORM:
        return np.float32(scale)
    values = np.where(np.isfinite(values), values, np.float32(0))
    if norm == L2_NORM:
        most = float(np.finfo(np.float32).max)
        return np.float32(min(np.sqrt(power_sum(values, 2)), most))
    return np.float32(np.abs(values).max(initial=0))


def _rescaling(norm: np.float32) -> np.float32:
    """Return a power of two that brings an extreme norm near 1, so that 1 / norm is finite."""
    if norm == 0 or SMALL <= norm <= LARGE:
        return np.float32(1)
    return LARGE if norm < SMALL else SMALL
