"""Integer: small multiples of one step, exactly. What sums of ternary values are coded with."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from ..validation import check_integer, check_real
from .base import Quantizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<fI")
MOST = 2**15 - 1


@dataclass(frozen=True)
class Integer(Quantizer):
    """Multiples of `step` from -max to max, in the fewest bits that tell them apart.

    Nothing is lost, but what is not on that grid cannot be coded and raises ValueError.
    Sums of steps that were rounded on the way count as the multiple they stand for. What is
    not finite comes back as NaN.
    """

    step: float
    max: int
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_real(self, "step")
        check_integer(self, "max")
        if not 0 < np.float32(self.step) < np.inf:
            raise ValueError(f"Integer: step must be positive, got {self.step}")
        if not 1 <= self.max <= MOST:
            raise ValueError(f"Integer: max must be from 1 to {MOST}, got {self.max}")

    def nbytes(self, count: int) -> int:
        """log2(2 max + 1) bits a value, rounded up."""
        return -(-count * (2 * self.max).bit_length() // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        kernels.to_integer(values, self.step, self.max, out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        kernels.from_integer(data, out.size, self.step, self.max, out)

    @property
    def wire_format(self) -> int:
        """10."""
        return 10

    @property
    def settings(self) -> bytes:
        """The step, as float32, and the largest multiple, as u32."""
        return SETTINGS.pack(self.step, self.max)
