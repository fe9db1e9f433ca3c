"""NUQSGD: QSGD with levels at powers of two.

Reference: Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy: NUQSGD, 2019.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from ..validation import check_bits, check_bucket
from .base import Quantizer
from .code import bucket_size, parse_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<B3xI")  # bits, bucket (0: full vector)


@dataclass(frozen=True)
class NUQSGD(Quantizer):
    """Round values at random to levels that are finer near zero.

        levels l_j = 0, 2^-s, ..., 1/2, 1 with s = 2^(bits - 1) - 2
        Q(v_i) = ||v|| sign(v_i) l, l one of the two levels around |v_i| / ||v||
        E Q(v_i) = v_i, with ||v|| the Euclidean norm of the bucket

    With `nonfinite="propagate"`, NaN and infinities are decoded as NaN, and do not change the other
    values of their bucket.

    Attributes:
        bits: Bits per value with the sign, 2 to 8.
        bucket: Number of consecutive values that share a norm; None for the full vector.
    """

    bits: int = 4
    bucket: int | None = 1024

    name = "nuqsgd"
    wire_formats = (5,)
    settings_size = SETTINGS.size
    option = "BITS"
    has_scales = True
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self)
        check_bucket(self)

    @classmethod
    def from_option(cls, text: str) -> NUQSGD:
        """Build an instance from nuqsgd:BITS."""
        return cls(parse_bits(cls.name, text)) if text else cls()

    @property
    def s(self) -> int:
        """Exponent of the smallest level above zero, 2^-s."""
        return (1 << self.bits - 1) - 2

    def nbytes(self, count: int) -> int:
        """Return four bytes per bucket and `bits` per value."""
        return kernels.grid_nbytes(count, bucket_size(self.bucket, count), self.bits)

    def omega(self, size: int) -> float:
        """Return omega in E||Q(v) - v||^2 <= omega ||v||^2 for vectors of `size` values."""
        d = min(size, bucket_size(self.bucket, size))
        smallest = 2.0**-self.s
        return 1 / 8 + min(smallest**2 * d / 4, smallest * math.sqrt(d))

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        bucket = bucket_size(self.bucket, values.size)
        kernels.to_table(values, bucket, levels(self.s), self.bits, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        bucket = bucket_size(self.bucket, out.size)
        kernels.from_table(data, out.size, bucket, levels(self.s), self.bits, out)

    @property
    def settings(self) -> bytes:
        """Bits and bucket."""
        return SETTINGS.pack(self.bits, self.bucket or 0)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> NUQSGD:
        """Return the quantizer of these settings."""
        del wire_format
        bits, bucket = SETTINGS.unpack(settings)
        return cls(bits, bucket or None)


@lru_cache(maxsize=8)
def levels(s: int) -> NDArray[np.float32]:
    """Return the levels 0, 2^-s, ..., 1/2, 1."""
    table = np.append(0, 2.0 ** np.arange(-s, 1)).astype(np.float32)
    table.flags.writeable = False
    return table
