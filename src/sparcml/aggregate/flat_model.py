"""Models and gradients as one flat vector, and back to the caller's types.

Decentralized and local training send all parameters of a model in one message, so they are joined
in the order of their names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..stream import Stream
from ..stream.tensors import flat_array, is_tensor, to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..stream.arrays import Values

UNNAMED = ""  # the name of a model that is not a mapping
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Layout:
    """Names, shapes and dtype of the parameters of a model, in the order of the names."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any]

    @property
    def offsets(self) -> list[int]:
        """Starts of the parameters in the flat vector, and its end."""
        sizes = [math.prod(shape) for shape in self.shapes]
        return [0, *itertools.accumulate(sizes)]

    @property
    def size(self) -> int:
        """Number of values."""
        return self.offsets[-1]

    def __str__(self) -> str:
        return f"{len(self.names)} parameters with {self.size} values of {self.dtype}"


@dataclass(frozen=True)
class Model:
    """A model as a flat vector.

    Attributes:
        values: All values; a view of the caller's array where possible.
        layout: Names and shapes of the parameters.
        back: Converts a flat vector to the caller's type.
    """

    values: Values
    layout: Layout
    back: Callable[[Values], Any]


def flatten(function: str, x: Any) -> Model:
    """Return a model: an array or a tensor, or a mapping from names to them.

    Raises:
        TypeError: If the values are not all float32 or all float64.
    """
    if not isinstance(x, Mapping):
        values = _flat(function, UNNAMED, x)
        layout = Layout((UNNAMED,), (_shape(x),), values.dtype)
        return Model(values, layout, _restore(x))
    for name in x:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"{function}: names of parameters must be nonempty strings, got {name!r}"
            )
    names = tuple(sorted(x))
    parts = [_flat(function, name, x[name]) for name in names]
    if not parts or {part.dtype for part in parts} != {parts[0].dtype}:
        kinds = ", ".join(sorted({str(part.dtype) for part in parts})) or "no parameters"
        raise TypeError(
            f"{function}: x must have values of one dtype, float32 or float64, got {kinds}; "
            f"convert it with astype"
        )
    layout = Layout(names, tuple(_shape(x[name]) for name in names), parts[0].dtype)
    order, restores = list(x), {name: _restore(x[name]) for name in names}

    def back(values: Values) -> dict[str, Any]:
        bounds = zip(names, itertools.pairwise(layout.offsets), strict=True)
        pieces = {name: values[start:end] for name, (start, end) in bounds}
        return {name: restores[name](pieces[name]) for name in order}

    return Model(join_adjacent(parts), layout, back)


def join_adjacent(parts: Sequence[Values]) -> Values:
    """Return vectors of one dtype as one: a view if they follow each other in one array."""
    base = parts[0].base
    if isinstance(base, np.ndarray) and base.ndim == 1 and base.dtype == parts[0].dtype:
        starts = [part.__array_interface__["data"][0] for part in parts]
        ends = [start + part.nbytes for start, part in zip(starts, parts, strict=True)]
        if all(part.base is base for part in parts) and starts[1:] == ends[:-1]:
            first = (starts[0] - base.__array_interface__["data"][0]) // base.itemsize
            view: Values = base[first : first + sum(part.size for part in parts)]
            if view.__array_interface__["data"][0] == starts[0] and view.flags.c_contiguous:
                return view
    return buffer_pool.concatenate(parts)


def flatten_gradient(function: str, gradient: Any, layout: Layout) -> Values:
    """Return a gradient of a model as a flat vector of the model's dtype."""
    named = gradient if isinstance(gradient, Mapping) else {UNNAMED: gradient}
    if set(named) != set(layout.names):
        raise ValueError(
            f"{function}: gradient must have the names of x ({_list(layout.names)}), got "
            f"{_list(named)}"
        )
    parts = []
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        part = named[name]
        values = part.to_dense() if isinstance(part, Stream) else part
        if math.prod(_shape(values)) != math.prod(shape):
            raise ValueError(
                f"{function}: gradient{_of(name)} must have the shape of x {shape}, got "
                f"{_shape(values)}"
            )
        flat = flat_array(values) if is_tensor(values) else np.asarray(values)
        if flat.dtype.kind not in "fiu":
            raise TypeError(
                f"{function}: gradient{_of(name)} must have real values, got {flat.dtype}"
            )
        parts.append(np.ascontiguousarray(flat, layout.dtype).reshape(-1))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def mean_model(function: str, models: Sequence[Any], weights: Sequence[float]) -> Any:
    """Return the weighted mean of models, formed in float64, in the form of the first."""
    flat = [flatten(function, model) for model in models]
    if len({model.layout for model in flat}) > 1:
        raise ValueError(f"{function}: models must have the same parameters and dtype")
    total = np.zeros(flat[0].layout.size)
    for model, weight in zip(flat, weights, strict=True):
        total += weight * model.values.astype(np.float64)
    return flat[0].back((total / sum(weights)).astype(flat[0].layout.dtype))


def check_finite(rank: int, what: str, values: Values) -> None:
    """Raise a ValueError if there is a NaN or an infinity, which would reach all ranks."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.vdot(values, values)):
            return
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"step: {what} of rank {rank} must be finite, got {len(bad)} values that are NaN "
            f"or infinite, the first at index {bad[0]}; check the loss and the learning rate"
        )


def _flat(function: str, name: str, x: Any) -> Values:
    if isinstance(x, Stream):
        raise TypeError(f"{function}: x{_of(name)} must be dense, got a Stream")
    if is_tensor(x):
        dtype = np.dtype(str(x.dtype).removeprefix("torch.").replace("bfloat16", "float16"))
        array = None if dtype not in DTYPES else flat_array(x)
    else:
        array = np.asarray(x)
        dtype = array.dtype
    if array is None or dtype not in DTYPES:
        raise TypeError(
            f"{function}: x{_of(name)} must be float32 or float64, got "
            f"{getattr(x, 'dtype', dtype)}; keep a float32 copy of the model"
        )
    return np.ascontiguousarray(array).reshape(-1)


def _restore(x: Any) -> Callable[[Values], Any]:
    shape = _shape(x)
    if is_tensor(x):
        return lambda values: to_tensor(values, like=x)
    return lambda values: values.reshape(shape)


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def _of(name: str) -> str:
    return f" of {name!r}" if name else ""


def _list(names: Any) -> str:
    return ", ".join(map(repr, sorted(names, key=str))) if any(names) else "a single array"
