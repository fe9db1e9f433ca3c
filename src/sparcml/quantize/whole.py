"""Whole: small multiples of one step, exactly. What sums of ternary values are coded with."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels
from .base import Code, Quantizer, check_length, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<fI")


@dataclass(frozen=True)
class Whole(Quantizer):
    """Multiples of `step` from -most to most, in the fewest bits that tell them apart.

    Nothing is lost, but what is not on that grid cannot be coded and raises ValueError.
    Sums of steps that were rounded on the way count as the multiple they stand for. What is
    not finite comes back as NaN.
    """

    step: float
    most: int
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < np.float32(self.step) < np.inf:
            raise ValueError(f"Whole: step must be positive, got {self.step}")
        if not 1 <= self.most < 2**15:
            raise ValueError(f"Whole: most must be from 1 to 32767, got {self.most}")

    def encode(self, values: Any, seed: int = 0) -> Code:
        """Packed multiples."""
        del seed
        array = np.asarray(values)
        data = kernels.to_whole(flat(array), self.step, self.most)
        return Code(array.size, data, array.shape)

    def decode(self, code: Code) -> NDArray[np.float32]:
        """Multiples of the step."""
        check_length(code, self.nbytes(code.count))
        values = kernels.from_whole(code.data, code.count, self.step, self.most)
        return code.shaped(values)

    def nbytes(self, count: int) -> int:
        """log2(2 most + 1) bits a value, rounded up."""
        return -(-count * (2 * self.most).bit_length() // 8)

    @property
    def wire_format(self) -> int:
        """10."""
        return 10

    @property
    def settings(self) -> bytes:
        """The step, as float32, and the largest multiple, as u32."""
        return SETTINGS.pack(self.step, self.most)
