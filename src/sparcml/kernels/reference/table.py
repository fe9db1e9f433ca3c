"""Values at random on any levels, by the definition (`cpp/kernels/table/table.h`)."""

from __future__ import annotations

import numpy as np

from .grid import UNIT, Bytes, Codes, Floats, factor_of, in_buckets, norms_and_codes
from .random import FRACTION, shares

ONE = np.float32(1)


def codes_of(
    values: Floats, norm: np.float32, levels: Floats, bits: int, seed: int, first: int
) -> Codes:
    """The codes of one bucket, whose words begin at `first`."""
    factor, size = factor_of(norm), np.abs(values)
    with np.errstate(all="ignore"):
        times = ONE / (norm * factor) if 0 < norm < np.inf else np.float32(0)
        r = np.where(np.isfinite(values), size * factor * times, np.float32(np.nan))
    if np.isinf(norm):
        r = np.where(np.isfinite(values), np.float32(0), size)
    nan, r = np.isnan(r), np.clip(np.nan_to_num(r), np.float32(0), ONE)
    j = np.searchsorted(levels[:-1], r, side="right") - 1
    share = (r - levels[j]) * (ONE / np.diff(levels))[j] * UNIT
    up = np.rint(share).astype(np.int32) + shares(seed, first, values.size) >> FRACTION
    level = j + np.minimum(up, 1)
    codes = np.where(values < 0, -level, level)
    return np.where(nan, -(1 << bits - 1), codes).astype(np.int8)


def to_table(
    values: Floats,
    bucket: int,
    levels: Floats,
    bits: int,
    norm: int,
    scale: float,
    seed: int,
) -> Bytes:
    """Norms of all buckets, then the codes, packed."""

    def coded(part: Floats, found: np.float32, first: int) -> Codes:
        return codes_of(part, found, levels, bits, seed, first)

    return in_buckets(values, bucket, bits, norm, scale, coded)


def from_table(code: Bytes, count: int, bucket: int, levels: Floats, bits: int) -> Floats:
    """Each code's level times its bucket's norm."""
    norms, factors, codes = norms_and_codes(code, count, bucket, bits)
    table: Floats = np.full(129, np.nan, np.float32)
    table[: levels.size] = levels
    with np.errstate(all="ignore"):
        x: Floats = table[np.abs(codes.astype(np.int32))] * (norms * factors)
        x /= factors
    x[codes < 0] *= -1
    x[(codes == -(1 << bits - 1)) | np.isnan(x)] = np.nan
    return x
