"""Powers of two, by the definition (`cpp/kernels/natural/natural.h`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .random import words

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def to_natural(values: Floats, seed: int) -> Bytes:
    """Exponents, then a plane of signs."""
    x = values.view(np.uint32).astype(np.int64)
    size = x & 0x7FFFFFFF
    nan = size > 0x7F800000
    exponent = np.where(nan, 0, size + (words(seed, 0, values.size) >> np.uint32(9)) >> 23)
    negative = nan | (exponent > 0) & (x >> 31 > 0)
    signs = np.packbits(negative, bitorder="little")
    return np.concatenate((exponent.astype(np.uint8), signs))


def from_natural(code: Bytes, count: int) -> Floats:
    """Powers of two; NaN is a zero with a sign."""
    exponent = code[:count].astype(np.uint32)
    sign = np.unpackbits(code[count:], count=count, bitorder="little").astype(np.uint32)
    bits = exponent << np.uint32(23) | sign << np.uint32(31)
    bits[bits == 1 << 31] = 0x7FC00000
    return bits.view(np.float32)
