"""A quantizer: one byte per value, as a multiple of a fixed step."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparcml.quantize import Quantizer


@dataclass(frozen=True)
class Byte(Quantizer):
    """Round to multiples of 1/8 within +-15.875."""

    name = "byte"
    wire_formats = (200,)
    biased: ClassVar[bool] = True

    @classmethod
    def planned(cls):
        return (cls(),)

    def nbytes(self, count):
        return count

    def _write(self, values, seed, out):
        out.view(np.int8)[:] = np.clip(np.rint(values * 8), -127, 127)

    def _read(self, data, out):
        np.multiply(data.view(np.int8), np.float32(1 / 8), out=out)
