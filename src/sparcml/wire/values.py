"""Value formats: raw floats as they are in memory, or rounded to 16 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAW, FLOAT16, BFLOAT16 = range(3)
ABSENT = 255  # a bare header
FORMATS = {"raw": RAW, "float16": FLOAT16, "bfloat16": BFLOAT16}


def itemsize(kind: int, dtype: np.dtype[Any]) -> int:
    """Bytes a value takes."""
    if kind == ABSENT:
        return 0
    if kind not in FORMATS.values():
        raise WireError(f"value format at offset 10 must be 0, 1 or 2, got {kind}")
    return dtype.itemsize if kind == RAW else 2


def write(kind: int, values: NDArray[Any], out: NDArray[np.uint8]) -> None:
    """Fill the section; a 16-bit float is rounded from float32."""
    if kind == RAW:
        out[:] = values.view(np.uint8)
    else:
        bits = kernels.to_half(values.astype(np.float32, copy=False), kind == BFLOAT16)
        out[:] = bits.view(np.uint8)


def read(
    kind: int, section: NDArray[np.uint8], dtype: np.dtype[Any]
) -> NDArray[np.float32] | NDArray[np.float64]:
    """The values; raw ones are a view of the message."""
    if kind == RAW:
        return section.view(dtype)
    values = kernels.from_half(section.view(np.uint16), kind == BFLOAT16)
    return values.astype(dtype, copy=False)
