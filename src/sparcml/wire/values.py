"""Value formats: floats as in memory, or the code of a quantizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import WireError
from ..quantize import Code, Quantizer, from_wire
from .header import RAW

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = 255  # a header-only message
MAX_SETTINGS = 64  # bytes


def nbytes(count: int, dtype: np.dtype[Any], quantizer: Quantizer | None) -> int:
    """Return the bytes of the section, or the maximum if the length varies."""
    if quantizer is None:
        return count * dtype.itemsize
    return len(quantizer.settings) + quantizer.nbytes(count)


def length(
    section: NDArray[np.uint8],
    count: int,
    dtype: np.dtype[Any],
    quantizer: Quantizer | None,
) -> int:
    """Return the bytes of the section that begins with these bytes."""
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
    """Write the section and return the bytes used. Callers have checked the values."""
    if quantizer is None:
        out[:] = values.view(np.uint8)
        return out.size
    at = len(quantizer.settings)
    out[:at] = np.frombuffer(quantizer.settings, np.uint8)
    return at + quantizer.propagating().encode(values, seed, out[at:]).nbytes


def quantizer_of(value_format: int, section: NDArray[np.uint8]) -> Quantizer | None:
    """Return the quantizer of a section, or None if values are raw or absent."""
    if value_format in (RAW, ABSENT):
        return None
    try:
        return from_wire(value_format, section[:MAX_SETTINGS].tobytes())
    except ValueError as error:
        raise WireError(str(error)) from None


def read(
    section: NDArray[np.uint8],
    count: int,
    dtype: np.dtype[Any],
    quantizer: Quantizer | None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return the values: a view of the message if raw; decoded values may go to `out`."""
    if quantizer is None:
        return section.view(dtype)
    if dtype.kind != "f":
        raise WireError(f"value section: a quantizer must encode floats, got {dtype}")
    code = section[len(quantizer.settings) :]
    try:
        values = quantizer.decode(Code(count, code), out if dtype == np.float32 else None)
    except ValueError as error:
        raise WireError(f"value section: {error}") from None
    with np.errstate(invalid="ignore"):  # signaling NaNs
        return values.astype(dtype, copy=False)
