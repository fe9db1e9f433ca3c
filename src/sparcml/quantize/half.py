"""Half: 16-bit floating point numbers, two bytes per value."""

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
    """Round values to float16 (11 bits of precision) or bfloat16 (8 bits).

        Q(v) = v rounded to the nearest 16-bit number, ties to even
        |Q(v) - v| <= 2^-11 |v| for float16, 2^-8 |v| for bfloat16, within the normal range
        float16: values of 65520 and above become infinite; bfloat16 has the range of float32

    With `nonfinite="propagate"`, NaN and infinities are decoded as they are.

    Attributes:
        dtype: "float16" or "bfloat16".
    """

    dtype: str = "float16"

    name = "half"
    wire_formats = tuple(FORMATS.values())
    option = "DTYPE"
    planning_cost = 0.55
    biased: ClassVar[bool] = True  # rounding errors do not average out

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in FORMATS:
            raise ValueError(
                f"Half: dtype must be 'float16' or 'bfloat16', got {self.dtype!r}"
            )

    @classmethod
    def from_option(cls, text: str) -> Half:
        """Build an instance from half:DTYPE; the default is float16."""
        return cls(text) if text else cls()

    @classmethod
    def planned(cls) -> tuple[Quantizer, ...]:
        """Return float16."""
        return (cls(),)

    @property
    def label(self) -> str:
        """Name in the tables of the planner."""
        return self.dtype

    @classmethod
    def examples(cls) -> tuple[Quantizer, ...]:
        """Return both formats."""
        return tuple(cls(dtype) for dtype in FORMATS)

    def nbytes(self, count: int) -> int:
        """Return two bytes per value."""
        return 2 * count

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        kernels.to_half(values, self.dtype == "bfloat16", out.view(np.uint16))

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        kernels.from_half(data.view(np.uint16), self.dtype == "bfloat16", out)

    @property
    def wire_format(self) -> int:
        """Value format of the dtype."""
        return FORMATS[self.dtype]

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> Half:
        """Return the quantizer of a value format."""
        del settings
        return cls(next(dtype for dtype, f in FORMATS.items() if f == wire_format))
