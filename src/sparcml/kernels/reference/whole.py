"""Whole multiples of a step, packed, in NumPy."""

import numpy as np
from numpy.typing import NDArray


def to_integer(
    values: NDArray[np.float32], step: float, most: int
) -> NDArray[np.uint8] | None:
    """Each value / step + most in the fewest bits; None if one is no such multiple."""
    width, finite = (2 * most).bit_length(), np.isfinite(values)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.where(finite, values, np.float32(0)) / np.float32(step)
        k = np.rint(x)
    off = np.float32(min(0.25, (most * most + 2 * most) / 2**24))
    if (np.abs(k) > most).any() or (np.abs(x - k) > off).any():
        return None
    codes = np.where(finite, k + most, 2**width - 1).astype(np.uint32)
    bits = codes[:, None] >> np.arange(width, dtype=np.uint32) & 1
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little")


def from_integer(
    packed: NDArray[np.uint8], count: int, step: float, most: int
) -> NDArray[np.float32] | None:
    """The values; None if a code is not in use."""
    width = (2 * most).bit_length()
    bits = np.unpackbits(packed, bitorder="little", count=count * width)
    codes = bits.reshape(count, width).astype(np.int64) @ (1 << np.arange(width))
    nan = codes == 2**width - 1
    if (codes[~nan] > 2 * most).any():
        return None
    values = (codes - most).astype(np.float32) * np.float32(step)
    return np.where(nan, np.float32(np.nan), values)
