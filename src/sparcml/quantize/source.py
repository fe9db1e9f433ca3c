"""What callers hand over to be coded, and where they want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..stream.tensors import check_tensor, is_tensor, on_host

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_array(values: Any) -> NDArray[Any]:
    """Real numbers of any shape: of an array, a list or a dense torch tensor.

    Raises:
        TypeError: If they are something else.
    """
    if is_tensor(values):
        check_tensor("encode", values)
        return on_host(values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"encode: values must be real numbers, got {array.dtype}")
    return array


def as_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """Flat and contiguous; too large is infinite, and seen by those who decode."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, np.float32).reshape(-1)


def check_out(who: str, out: Any, dtype: Any) -> None:
    """ValueError unless a result of this type can be written there."""
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{who}: out must be an array of {np.dtype(dtype)}, got {got}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f"{who}: out must be contiguous and writable")
