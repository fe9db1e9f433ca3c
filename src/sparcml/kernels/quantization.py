"""Codes that hold each value in a few bits; `reference` defines each of them.

Values are quantized in buckets: each bucket has a norm or its own levels, stored as
float32. `out` arguments receive the result; by default it is a new array.
"""

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

MAX_NORM, L2_NORM, GIVEN_NORM = range(3)  # the norm of a bucket


def grid_nbytes(count: int, bucket: int, bits: int) -> int:
    """Return the size of a code: one float32 norm per bucket and `bits` per value."""
    return 4 * -(-count // bucket) + (count * bits + 7) // 8


def to_grid(
    values: Floats,
    bucket: int,
    levels: int,
    bits: int,
    norm: int = MAX_NORM,
    *,
    scale: float = 0.0,
    seed: int = 0,
    out: Bytes | None = None,
) -> Bytes:
    """Round values stochastically to a uniform grid and return their code.

    Args:
        values: The values.
        bucket: Number of values per norm.
        levels: Number of levels on each side of zero.
        bits: Bits per value.
        norm: `MAX_NORM`, `L2_NORM`, or `GIVEN_NORM` for `scale`.
        scale: The norm of all buckets, with `GIVEN_NORM`.
        seed: Random seed.
        out: The code.
    """
    if out is None:
        out = buffer_pool.empty(grid_nbytes(values.size, bucket, bits), np.uint8)
    _core.to_grid(values, bucket, levels, bits, norm, scale, seed, out)
    return out


def from_grid(
    code: Bytes, count: int, bucket: int, levels: int, bits: int, out: Floats | None = None
) -> Floats:
    """Return the values of a code of `to_grid`."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_grid(code, bucket, levels, bits, out)
    return out


def to_table(
    values: Floats,
    bucket: int,
    levels: Floats,
    bits: int,
    norm: int = L2_NORM,
    *,
    scale: float = 0.0,
    seed: int = 0,
    out: Bytes | None = None,
) -> Bytes:
    """Round values stochastically to a table of levels and return their code.

    Args:
        values: The values.
        bucket: Number of values per norm.
        levels: Magnitudes relative to the norm, ascending from 0 to 1.
        bits: Bits per value.
        norm: `MAX_NORM`, `L2_NORM`, or `GIVEN_NORM` for `scale`.
        scale: The norm of all buckets, with `GIVEN_NORM`.
        seed: Random seed.
        out: The code.
    """
    if out is None:
        out = buffer_pool.empty(grid_nbytes(values.size, bucket, bits), np.uint8)
    _core.to_table(values, bucket, levels, bits, norm, scale, seed, out)
    return out


def from_table(
    code: Bytes,
    count: int,
    bucket: int,
    levels: Floats,
    bits: int,
    out: Floats | None = None,
) -> Floats:
    """Return the values of a code of `to_table`."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_table(code, bucket, levels, bits, out)
    return out


def to_natural(values: Floats, *, seed: int = 0, out: Bytes | None = None) -> Bytes:
    """Round values stochastically to powers of two; return their signs and exponents."""
    if out is None:
        out = buffer_pool.empty(values.size + -(-values.size // 8), np.uint8)
    _core.to_natural(values, seed, out)
    return out


def from_natural(code: Bytes, count: int, out: Floats | None = None) -> Floats:
    """Return the values of a code of `to_natural`."""
    if out is None:
        out = buffer_pool.empty(count, np.float32)
    _core.from_natural(code, out)
    return out


def to_onebit(
    values: Floats,
    bucket: int,
    mean: bool = False,
    levels: Floats | None = None,
    bits: Bytes | None = None,
) -> tuple[Floats, Bytes]:
    """Return two levels per bucket, split at zero or at its mean, and one bit per value."""
    if levels is None:
        levels = buffer_pool.empty(2 * -(-values.size // bucket), np.float32)
    bits = _bitplane(values.size) if bits is None else bits
    _core.to_onebit(values, bucket, mean, levels, bits)
    return levels, bits


def to_sign(
    values: Floats, bucket: int, scales: Floats | None = None, bits: Bytes | None = None
) -> tuple[Floats, Bytes]:
    """Return the mean magnitude per bucket, and one bit per value, set if it is >= 0."""
    if scales is None:
        scales = buffer_pool.empty(-(-values.size // bucket), np.float32)
    bits = _bitplane(values.size) if bits is None else bits
    _core.to_sign(values, bucket, scales, bits)
    return scales, bits


def from_bitplane(
    levels: Floats, bits: Bytes, count: int, bucket: int, values: Floats | None = None
) -> Floats:
    """Return the level that each bit selects from the two of its bucket."""
    if values is None:
        values = buffer_pool.empty(count, np.float32)
    _core.from_bitplane(levels, bits, bucket, values)
    return values


def to_integer(
    values: Floats, step: float, max_multiple: int, packed: Bytes | None = None
) -> Bytes:
    """Return value / step, packed, for values that are integer multiples of `step`.

    Raises:
        ValueError: A value is not a multiple, or larger than `max_multiple` steps.
    """
    if packed is None:
        width = (2 * max_multiple).bit_length()
        packed = buffer_pool.empty(-(-values.size * width // 8), np.uint8)
    checked = _core.to_integer(values, step, max_multiple, packed)
    if checked < values.size:
        raise ValueError(
            f"to_integer: values must be {step:g} times an integer from -{max_multiple} "
            f"to {max_multiple}, got another value at or after position {checked}"
        )
    return packed


def from_integer(
    packed: Bytes, count: int, step: float, max_multiple: int, values: Floats | None = None
) -> Floats:
    """Return the values of a code of `to_integer`.

    Raises:
        ValueError: A code is above `max_multiple`.
    """
    if values is None:
        values = buffer_pool.empty(count, np.float32)
    checked = _core.from_integer(packed, step, max_multiple, values)
    if checked < count:
        raise ValueError(
            f"from_integer: multiples must be at most {max_multiple}, "
            f"got a larger one at or after position {checked}"
        )
    return values


def _bitplane(count: int) -> Bytes:
    bits: Bytes = buffer_pool.empty(-(-count // 8), np.uint8)
    return bits
