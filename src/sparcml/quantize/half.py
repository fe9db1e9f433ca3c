"""Half: 16-bit floats. Two bytes a value instead of four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from .base import Quantizer

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

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        """To nearest, ties to even; too large becomes infinite."""
        del seed
        kernels.to_half(values, self.dtype == "bfloat16", out.view(np.uint16))

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Exactly the 16-bit values."""
        kernels.from_half(data.view(np.uint16), self.dtype == "bfloat16", out)

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
