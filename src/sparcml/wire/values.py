"""Value formats: raw floats as they are in memory, or a quantizer's code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import WireError
from ..quantize import Code, Quantizer, from_wire

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAW = 0
ABSENT = 255  # a bare header
MOST_SETTINGS = 64  # bytes: enough for any quantizer's


def nbytes(count: int, dtype: np.dtype[Any], quantizer: Quantizer | None) -> int:
    """Bytes of the section; at most so many if the code's length varies."""
    if quantizer is None:
        return count * dtype.itemsize
    return len(quantizer.settings) + quantizer.nbytes(count)


def length(
    section: NDArray[np.uint8],
    count: int,
    dtype: np.dtype[Any],
    quantizer: Quantizer | None,
) -> int:
    """Bytes of the section that begins with these."""
    if quantizer is None:
        return count * dtype.itemsize
    at = len(quantizer.settings)
    try:
        return at + quantizer.encoded_nbytes(count, section[at:])
    except ValueError as error:
        raise WireError(f"value section: {error}") from None


def write(
    values: NDArray[Any], quantizer: Quantizer | None, seed: int, out: NDArray[np.uint8]
) -> int:
    """Fill the section, and tell how much of it was needed; a quantizer works on float32."""
    if quantizer is None:
        out[:] = values.view(np.uint8)
        return out.size
    at = len(quantizer.settings)
    out[:at] = np.frombuffer(quantizer.settings, np.uint8)
    return at + quantizer.encode(values, seed, out[at:]).nbytes


def quantizer_of(kind: int, section: NDArray[np.uint8]) -> Quantizer | None:
    """What the section was coded with."""
    if kind in (RAW, ABSENT):
        return None
    try:
        return from_wire(kind, section[:MOST_SETTINGS].tobytes())
    except ValueError as error:
        raise WireError(str(error)) from None


def read(
    section: NDArray[np.uint8],
    count: int,
    dtype: np.dtype[Any],
    quantizer: Quantizer | None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The values; raw ones are a view of the message, coded ones may go to `out`."""
    if quantizer is None:
        return section.view(dtype)
    code = section[len(quantizer.settings) :]
    try:
        values = quantizer.decode(Code(count, code), out if dtype == np.float32 else None)
    except ValueError as error:
        raise WireError(f"value section: {error}") from None
    with np.errstate(invalid="ignore"):  # a NaN that signals is one all the same
        return values.astype(dtype, copy=False)
