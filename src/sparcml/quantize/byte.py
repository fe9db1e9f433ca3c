"""Byte: whole multiples of a bucket's largest magnitude / 127. One byte a value."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels, memory
from .base import Code, Quantizer, check_length, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<Q")


@dataclass(frozen=True)
class Byte(Quantizer):
    """To the nearest of 255 values between plus and minus a bucket's largest magnitude.

    A code is a float32 scale for each bucket of consecutive values, then a signed byte a
    value. NaN stays NaN; an infinity spoils its bucket (infinities and NaN come out).
    """

    bucket: int = 1024
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.bucket < 2**32:
            raise ValueError(f"Byte: bucket must be at least 1, got {self.bucket}")

    def encode(self, values: Any, seed: int = 0) -> Code:
        """Scales, then bytes."""
        del seed
        array = np.asarray(values)
        scales, codes = kernels.to_bytes(flat(array), self.bucket)
        data = memory.concatenate((scales.view(np.uint8), codes.view(np.uint8)))
        return Code(array.size, data, array.shape)

    def decode(self, code: Code) -> NDArray[np.float32]:
        """Multiples of the scales."""
        check_length(code, self.nbytes(code.count))
        at = code.nbytes - code.count
        scales, codes = code.data[:at].view(np.float32), code.data[at:].view(np.int8)
        return code.shaped(kernels.from_bytes(scales, codes, self.bucket))

    def nbytes(self, count: int) -> int:
        """One a value and four a bucket."""
        return count + 4 * -(-count // self.bucket)

    @property
    def wire_format(self) -> int:
        """3."""
        return 3

    @property
    def settings(self) -> bytes:
        """The bucket, as u64."""
        return SETTINGS.pack(self.bucket)
