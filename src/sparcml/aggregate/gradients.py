"""What callers hold, opened: an array or tensor, or many by name, and the way back."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..stream import Stream
from ..stream.convert import to_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stream.stream import Values

ALONE = ""  # the name of a gradient that was given without one

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """One gradient.

    Attributes:
        name: What the caller calls it.
        shape: As the caller holds it.
        values: The same, flat, float32 or float64; shared with the caller where it can be.
        stream: Instead of values, if the gradient is sparse already.
        out: Where its mean may go, if not into new memory: the values themselves.
        back: Makes of a flat array what the caller gave.
    """

    name: str
    shape: Shape
    values: Values
    stream: Stream | None
    back: Callable[[Any], Any]
    out: Values | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


def shapes_of(sizes: Any) -> dict[str, Shape]:
    """An int, a shape, or shapes by name, as shapes by name."""
    if isinstance(sizes, Mapping):
        return {_name(name): _shape(sizes[name]) for name in sorted(sizes)}
    return {ALONE: _shape(sizes)}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"names of parameters must be words, got {name!r}")
    return name


def _shape(shape: Any) -> Shape:
    shape = getattr(shape, "shape", shape)  # an array or a tensor stands for its shape
    lengths = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in lengths):
        raise TypeError(f"expected a size or a shape of whole numbers, got {shape!r}")
    return tuple(int(n) for n in lengths)


def opened(
    gradient: Any, *, overwrite: bool = False
) -> tuple[list[Parameter], Callable[[dict[str, Any]], Any]]:
    """The parameters in the order of their names, and how to give their means back."""
    if isinstance(gradient, Mapping):
        names = sorted(_name(name) for name in gradient)
        found = [_parameter(name, gradient[name]) for name in names]
        if overwrite:
            found = [p if p.stream else replace(p, out=p.values) for p in found]
        by_name = {p.name: p for p in found}
        order = list(gradient)
        return found, lambda means: {n: by_name[n].back(means[n]) for n in order}
    alone = _parameter(ALONE, gradient)
    return [alone], lambda means: alone.back(means[ALONE])


def _parameter(name: str, x: Any) -> Parameter:
    if isinstance(x, Stream):
        return Parameter(name, (x.size,), x.raw_values, x, lambda y: y)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _from_tensor(name, x, torch)
    array = np.asarray(x)
    if array.dtype.kind != "f":
        raise TypeError(f"{describe(name)} must be of floats, got {array.dtype}")
    return Parameter(name, array.shape, _flat(array), None, _array_back(array))


def describe(name: str) -> str:
    """How messages speak of a parameter."""
    return f"the gradient of {name!r}" if name else "the gradient"


def _flat(array: Values) -> Values:
    wide = np.float64 if array.dtype.itemsize >= 8 else np.float32
    return np.ascontiguousarray(array, wide).reshape(-1)


def _array_back(array: Values) -> Callable[[Any], Any]:
    shape, dtype = array.shape, array.dtype
    return lambda y: y.reshape(shape).astype(dtype, copy=False)


def _from_tensor(name: str, x: Any, torch: Any) -> Parameter:
    if x.layout is torch.sparse_coo:
        stream, as_given = to_stream(x)
        return Parameter(name, (stream.size,), stream.raw_values, stream, as_given)
    if not x.dtype.is_floating_point:
        raise TypeError(f"{describe(name)} must be of floats, got {x.dtype}")
    wide = x.detach() if x.dtype in (torch.float32, torch.float64) else x.detach().float()
    values = wide.cpu().contiguous().numpy().reshape(-1)

    def back(y: Values) -> Any:
        return torch.from_numpy(y).reshape(x.shape).to(x.device, x.dtype)

    return Parameter(name, tuple(x.shape), values, None, back)
