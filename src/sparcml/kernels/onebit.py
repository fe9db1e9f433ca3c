"""Values in one bit each; `cpp/kernels/onebit/onebit.h` and `reference/onebit.py` say how."""

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Floats = NDArray[np.float32]
Bits = NDArray[np.uint8]


def to_onebit(
    values: Floats,
    bucket: int,
    mean: bool = False,
    levels: Floats | None = None,
    bits: Bits | None = None,
) -> tuple[Floats, Bits]:
    """Two levels for each bucket, split at zero or at its mean, and a bit a value."""
    if levels is None:
        levels = buffer_pool.empty(2 * -(-values.size // bucket), np.float32)
    bits = _plane(values.size) if bits is None else bits
    _core.one_bit(values, bucket, mean, levels, bits)
    return levels, bits


def to_sign(
    values: Floats, bucket: int, scales: Floats | None = None, bits: Bits | None = None
) -> tuple[Floats, Bits]:
    """The mean magnitude of each bucket, and a bit a value: not below zero."""
    if scales is None:
        scales = buffer_pool.empty(-(-values.size // bucket), np.float32)
    bits = _plane(values.size) if bits is None else bits
    _core.signs(values, bucket, scales, bits)
    return scales, bits


def from_bitplane(
    levels: Floats, bits: Bits, count: int, bucket: int, values: Floats | None = None
) -> Floats:
    """The level of its bucket that each bit chooses."""
    if values is None:
        values = buffer_pool.empty(count, np.float32)
    _core.two_levels(levels, bits, bucket, values)
    return values


def _plane(count: int) -> Bits:
    plane: Bits = buffer_pool.empty(-(-count // 8), np.uint8)
    return plane
