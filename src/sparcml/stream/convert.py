"""Vectors of users to streams, and results back to the type of the input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import from_array, from_scipy, is_scipy, read_only_view
from .stream import Stream
from .tensors import from_tensor, is_sparse_tensor, is_tensor, to_torch_like

if TYPE_CHECKING:
    from collections.abc import Callable

    from .arrays import Values

VECTOR_TYPES = ("stream", "array", "tensor", "row")


def vector_type(x: Any, function: str = "to_stream") -> str:
    """Return the one of VECTOR_TYPES that x is.

    Args:
        x: A vector.
        function: Name of the caller, for the error message.

    Raises:
        TypeError: If x is none of them.
    """
    if isinstance(x, Stream):
        return "stream"
    if isinstance(x, np.ndarray):
        return "array"
    if is_tensor(x):
        return "tensor"
    if is_scipy(x):
        return "row"
    raise TypeError(
        f"{function}: x must be a Stream, a NumPy array, a torch tensor, a scipy sparse row or "
        f"a real number, got {type(x).__name__}"
        + "; numpy.asarray(x) makes an array"
        * isinstance(x, list | tuple)
    )


def to_stream(
    x: Any,
    fill: float = 0.0,
    *,
    bitwise: bool = False,
    dense: bool = False,
    function: str = "to_stream",
) -> tuple[Stream, Callable[[Stream], Any]]:
    """Return a vector as a stream, and a function that restores the type of x.

    Entries of dense vectors that equal `fill` are left out, unless `dense` is set.
    """
    if fill != 0 and (is_scipy(x) or is_sparse_tensor(x)):
        raise ValueError(
            f"{function}: op must be sum or mean for sparse tensors and scipy rows, whose "
            f"absent entries are 0; use a Stream, or make them dense"
        )
    kind = vector_type(x, function)
    if kind == "stream":
        return x, Stream.read_only
    if kind == "array":
        shape = x.shape
        arrays = from_array(x, fill=fill, bitwise=bitwise, dense=dense)
        return Stream.unchecked(*arrays), lambda y: _to_array(y, shape)
    if kind == "tensor":
        arrays = from_tensor(x, fill=fill, dense=dense)
        return Stream.unchecked(*arrays), lambda y: to_torch_like(y, x)
    return Stream.unchecked(*from_scipy(x)), lambda y: _to_row(y, x.shape)


def as_vector_type(y: Stream, vector_type: str) -> Any:
    """Return a stream as one of VECTOR_TYPES, in one dimension."""
    if vector_type == "stream":
        return y.read_only()
    if vector_type == "array":
        return _to_array(y, (y.size,))
    return y.to_torch().to_dense().reshape(-1) if vector_type == "tensor" else y.to_scipy()


def _to_array(y: Stream, shape: tuple[int, ...]) -> Values:
    dense = y.raw_values if y.is_dense else y.to_dense()
    dense = dense.reshape(shape) if y.size == math.prod(shape) else dense.reshape(-1)
    return read_only_view(dense)


def _to_row(y: Stream, shape: tuple[int, ...]) -> Any:
    row = y.to_scipy()
    return row.reshape(shape) if y.size == math.prod(shape) else row
