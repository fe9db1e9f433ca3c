"""Half: 16-bit floats. Two bytes a value instead of four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels
from .base import Code, Quantizer, check_length, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMATS = {"float16": 1, "bfloat16": 2}


@dataclass(frozen=True)
class Half(Quantizer):
    """Rounded to float16 (11 bits of precision) or bfloat16 (8 bits, float32's range)."""

    dtype: str = "float16"
    biased: ClassVar[bool] = True  # to nearest: an error that does not average out

    def __post_init__(self) -> None:
        if self.dtype not in FORMATS:
            raise ValueError(f"Half: dtype must be float16 or bfloat16, got {self.dtype!r}")

    def encode(self, values: Any, seed: int = 0) -> Code:
        """To nearest, ties to even; too large becomes infinite."""
        del seed
        array = np.asarray(values)
        bits = kernels.to_half(flat(array), self.dtype == "bfloat16")
        return Code(array.size, bits.view(np.uint8), array.shape)

    def decode(self, code: Code) -> NDArray[np.float32]:
        """Exactly the 16-bit values."""
        check_length(code, self.nbytes(code.count))
        values = kernels.from_half(code.data.view(np.uint16), self.dtype == "bfloat16")
        return code.shaped(values)

    def nbytes(self, count: int) -> int:
        """Two a value."""
        return 2 * count

    @property
    def wire_format(self) -> int:
        """1 or 2."""
        return FORMATS[self.dtype]

    @property
    def settings(self) -> bytes:
        """None: the number says it all."""
        return b""
