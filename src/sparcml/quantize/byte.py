"""Byte: whole multiples of a bucket's largest magnitude / 127. One byte a value."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from .base import Quantizer

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

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        """Scales, then bytes."""
        del seed
        scales, codes = kernels.to_bytes(values, self.bucket)
        np.concatenate((scales.view(np.uint8), codes.view(np.uint8)), out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Multiples of the scales."""
        at = data.size - out.size
        scales, codes = data[:at].view(np.float32), data[at:].view(np.int8)
        out[:] = kernels.from_bytes(scales, codes, self.bucket)

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
