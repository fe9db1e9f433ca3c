"""NUQSGD (Ramezani-Kebrya et al., 2019): QSGD with levels at powers of two."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from .base import Quantizer
from .buckets import bucket_of, check_bits, check_bucket

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<B3xI")  # bits, bucket (0: the whole vector)


@dataclass(frozen=True)
class NUQSGD(Quantizer):
    """Levels 0, 2^-s, ..., 1/2, 1 of the length: finer where most values are.

    A value goes at random to one of its two neighbours, so that the mean is the value. NaN
    stays NaN; an infinity spoils its bucket (infinities and NaN come out).

    Attributes:
        bits: Of a code, with its sign: 2 to 8.
        bucket: Consecutive values that share a norm; None for the whole vector.
    """

    bits: int = 4
    bucket: int | None = 1024
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_bits(self)
        check_bucket(self)

    @property
    def s(self) -> int:
        """The smallest level above zero is 2^-s: as many as go in so many bits."""
        return (1 << self.bits - 1) - 2

    def nbytes(self, count: int) -> int:
        """Four a bucket, and `bits` a value."""
        return kernels.grid_nbytes(count, bucket_of(self.bucket, count), self.bits)

    def omega(self, size: int) -> float:
        """E||Q(v) - v||^2 <= omega ||v||^2 for vectors of so many values."""
        d = min(size, bucket_of(self.bucket, size))
        least = 2.0**-self.s
        return 1 / 8 + min(least**2 * d / 4, least * math.sqrt(d))

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        """Norms, then packed levels."""
        bucket = bucket_of(self.bucket, values.size)
        kernels.to_table(values, bucket, levels(self.s), self.bits, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Levels times norms."""
        bucket = bucket_of(self.bucket, out.size)
        kernels.from_table(data, out.size, bucket, levels(self.s), self.bits, out)

    @property
    def wire_format(self) -> int:
        """5."""
        return 5

    @property
    def settings(self) -> bytes:
        """Bits and bucket."""
        return SETTINGS.pack(self.bits, self.bucket or 0)

    @classmethod
    def from_settings(cls, settings: bytes) -> NUQSGD:
        """What these bytes stand for.

        Raises:
            ValueError: If they are no settings.
        """
        bits, bucket = SETTINGS.unpack(settings)
        return cls(bits, bucket or None)


@lru_cache(maxsize=8)
def levels(s: int) -> NDArray[np.float32]:
    """0, then 2^-s to 1."""
    table = np.append(0, 2.0 ** np.arange(-s, 1)).astype(np.float32)
    table.flags.writeable = False
    return table
