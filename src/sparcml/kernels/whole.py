"""Whole multiples of a step, packed; `cpp/kernels/whole/whole.h` draws the layout."""

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def width(most: int) -> int:
    """Bits of a multiple from -most to most."""
    return (2 * most).bit_length()


def to_integer(
    values: Floats, step: float, most: int, packed: Bytes | None = None
) -> Bytes:
    """Each value / step, packed; ValueError if one is no multiple, or too large."""
    if packed is None:
        packed = buffer_pool.empty(-(-values.size * width(most) // 8), np.uint8)
    fine = _core.to_whole(values, step, most, packed)
    if fine < values.size:
        raise ValueError(
            f"values from {fine} on have one that is not {step:g} times a whole number "
            f"from -{most} to {most}"
        )
    return packed


def from_integer(
    packed: Bytes, count: int, step: float, most: int, values: Floats | None = None
) -> Floats:
    """The values; ValueError if a code is not in use."""
    if values is None:
        values = buffer_pool.empty(count, np.float32)
    fine = _core.from_whole(packed, step, most, values)
    if fine < count:
        raise ValueError(f"values from {fine} on have one that is above {most}")
    return values
