"""Integer: small multiples of one step, packed without loss; encodes sums of ternary values."""

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

SETTINGS = struct.Struct("<fI")  # step, max
MAX = 2**15 - 1


@dataclass(frozen=True)
class Integer(Quantizer):
    """Pack integer multiples of `step` in the fewest bits.

        n = round(v / step), an integer with -max <= n <= max
        Q(v) = n step, in ceil(log2(2 max + 1)) bits
        Q(v) = v for every multiple of the step; other values raise ValueError

    A value that is a sum of steps up to rounding counts as that multiple. With
    `nonfinite="propagate"`, NaN and infinities are decoded as NaN.

    Attributes:
        step: Distance of the values, positive.
        max: Largest multiple, 1 to 32767.
    """

    step: float
    max: int

    name = "integer"
    wire_formats = (10,)
    settings_size = SETTINGS.size
    selectable = False  # gradients are not multiples of a step
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real(self, "step")
        check_integer(self, "max")
        if not 0 < np.float32(self.step) < np.inf:
            raise ValueError(f"Integer: step must be positive, got {self.step}")
        if not 1 <= self.max <= MAX:
            raise ValueError(f"Integer: max must be from 1 to {MAX}, got {self.max}")

    @classmethod
    def examples(cls) -> tuple[Quantizer, ...]:
        """Return none: it cannot encode arbitrary values."""
        return ()

    def nbytes(self, count: int) -> int:
        """Return log2(2 max + 1) bits per value, rounded up."""
        return -(-count * (2 * self.max).bit_length() // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        kernels.to_integer(values, self.step, self.max, out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        kernels.from_integer(data, out.size, self.step, self.max, out)

    @property
    def settings(self) -> bytes:
        """Step as float32 and largest multiple as u32."""
        return SETTINGS.pack(self.step, self.max)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> Integer:
        """Return the quantizer of these settings."""
        del wire_format
        return cls(*SETTINGS.unpack(settings))
