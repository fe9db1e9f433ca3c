"""Conversion of gradients to flat arrays and streams, and back to the caller's types."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..stream import Stream
from ..stream.convert import to_stream
from ..stream.tensors import flat_array, is_tensor, to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stream.arrays import Values

UNNAMED = ""  # the name of a gradient that is not in a mapping

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """One gradient.

    Attributes:
        name: Name of the parameter.
        shape: Shape of the caller's gradient.
        values: Its values, flat, float32 or float64; a view of the caller's where possible.
        stream: The gradient if it is sparse, else None.
        back: Converts a flat array to the caller's type.
        out: Array for the mean; None allocates a new one.
        lr: Learning rate that the mean will be multiplied by; None if unknown.
        reuses_state: Whether the new state may be written to the arrays of the old one.
    """

    name: str
    shape: Shape
    values: Values
    stream: Stream | None
    back: Callable[[Any], Any]
    out: Values | None = None
    lr: float | None = None
    reuses_state: bool = False

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


def shapes_of(sizes: Any) -> dict[str, Shape]:
    """Return shapes by name for a size, a shape, or a mapping from names to them."""
    if isinstance(sizes, Mapping):
        return {_name(name): _shape(sizes[name]) for name in sorted(sizes)}
    return {UNNAMED: _shape(sizes)}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"aggregate: names of parameters must be nonempty strings, got {name!r}"
        )
    return name


def _shape(shape: Any) -> Shape:
    shape = getattr(shape, "shape", shape)  # an array or a tensor stands for its shape
    lengths = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in lengths):
        raise TypeError(f"init: sizes must be an integer or a shape, got {shape!r}")
    return tuple(int(n) for n in lengths)


def opened(
    gradient: Any, *, overwrite: bool = False, lr: float | Mapping[str, float] | None = None
) -> tuple[list[Parameter], Callable[[dict[str, Any]], Any]]:
    """Return the parameters in the order of their names, and a function that converts means.

    Args:
        gradient: An array, tensor or stream, or a mapping from names to them.
        overwrite: Whether means of dense gradients in a mapping may replace their values.
        lr: Learning rate of all parameters, or learning rates by name.
    """
    if isinstance(gradient, Mapping):
        names = sorted(_name(name) for name in gradient)
        parameters = [
            replace(_parameter(name, gradient[name]), lr=_rate(lr, name)) for name in names
        ]
        if overwrite:
            parameters = [
                p if p.stream is not None else replace(p, out=p.values) for p in parameters
            ]
        by_name = {p.name: p for p in parameters}
        order = list(gradient)
        return parameters, lambda means: {n: by_name[n].back(means[n]) for n in order}
    single = replace(_parameter(UNNAMED, gradient), lr=_rate(lr, UNNAMED))
    return [single], lambda means: single.back(means[UNNAMED])


def _rate(lr: float | Mapping[str, float] | None, name: str) -> float | None:
    """Return the learning rate of a parameter."""
    rate = lr.get(name) if isinstance(lr, Mapping) else lr
    if rate is None:
        return None
    if not 0 <= rate < math.inf:
        raise ValueError(
            f"aggregate: lr must be a nonnegative number, or numbers by name, got {rate!r}"
        )
    return float(rate)


def _parameter(name: str, x: Any) -> Parameter:
    if isinstance(x, Stream):
        return Parameter(name, (x.size,), x.raw_values, x, lambda y: y)
    if is_tensor(x):
        return _from_tensor(name, x)
    array = np.asarray(x)
    if array.dtype.kind != "f":
        raise TypeError(_not_floats(name, array.dtype))
    return Parameter(name, array.shape, _flat(array), None, _array_back(array))


def describe(name: str, what: str = "gradient") -> str:
    """Return a phrase for the gradient of a parameter, for error messages."""
    return f"the {what} of {name!r}" if name else f"the {what}"


def _not_floats(name: str, dtype: Any) -> str:
    return f"aggregate: {describe(name)} must have floating point values, got {dtype}"


def _flat(array: Values) -> Values:
    wide = np.float64 if array.dtype.itemsize >= 8 else np.float32
    return np.ascontiguousarray(array, wide).reshape(-1)


def _array_back(array: Values) -> Callable[[Any], Any]:
    shape, dtype = array.shape, array.dtype
    return lambda y: y.reshape(shape).astype(dtype, copy=False)


def _from_tensor(name: str, x: Any) -> Parameter:
    torch = sys.modules["torch"]
    if x.layout is torch.sparse_coo:
        stream, restore = to_stream(x)
        return Parameter(name, (stream.size,), stream.raw_values, stream, restore)
    if not x.dtype.is_floating_point:
        raise TypeError(_not_floats(name, x.dtype))
    return Parameter(
        name, tuple(x.shape), flat_array(x), None, lambda y: to_tensor(y, like=x)
    )
