"""Codes, the arrays of users that are encoded, and settings that quantizers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..stream.arrays import check_unmasked
from ..stream.tensors import check_tensor, is_tensor, on_host

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Code:
    """Encoded values.

    Attributes:
        count: Number of values.
        data: Bytes of the code.
        shape: Shape of the array that was encoded; None means one dimension.
    """

    count: int
    data: NDArray[np.uint8]
    shape: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Number of bytes of the code."""
        return self.data.nbytes

    def __bytes__(self) -> bytes:
        return self.data.tobytes()


def check_code(code: Any) -> None:
    """Raise a TypeError unless this is a result of `encode`."""
    if not isinstance(code, Code):
        raise TypeError(
            f"decode: code must be a Code, the result of encode, got {type(code).__name__}; "
            f"from bytes: Code(count, np.frombuffer(data, np.uint8))"
        )


def as_array(values: Any) -> NDArray[Any]:
    """Return real numbers of any shape as an array; torch tensors are copied to the host."""
    if is_tensor(values):
        check_tensor("encode", values)
        return on_host(values)
    check_unmasked("encode", "values", values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"encode: values must be real numbers, got {array.dtype}")
    return array


def as_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return a flat, contiguous float32 array; values too large become infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, np.float32).reshape(-1)


def first_nonfinite(values: NDArray[np.float32]) -> int | None:
    """Return the index of the first NaN or infinity, or None."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(
            np.vdot(values, values)
        ):  # one fast pass; large squares may overflow
            return None
    is_bad = ~np.isfinite(values)
    return int(is_bad.argmax()) if is_bad.any() else None


def check_out(function: str, out: Any, dtype: Any) -> None:
    """Check that `out` is a contiguous and writable array of this dtype."""
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(
            f"{function}: out must be an array of {np.dtype(dtype)}, got {got}"
        )
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f"{function}: out must be contiguous and writable")


def bucket_size(bucket: int | None, count: int) -> int:
    """Return the number of values per bucket; None is all of `count` values."""
    return max(1, count) if bucket is None else bucket


def parse_bits(name: str, text: str) -> int:
    """Return the integer of a specification such as qsgd:4."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}: BITS must be an integer, got {text!r}") from None


def mix_seed(*numbers: int) -> int:
    """Combine several numbers into one 64-bit seed, by FNV-1a over 64-bit words."""
    seed = 0xCBF29CE484222325
    for number in numbers:
        seed = ((seed ^ number % 2**64) * 0x100000001B3) % 2**64
    return seed
