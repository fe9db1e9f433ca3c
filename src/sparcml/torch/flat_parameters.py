"""Parameters of a model as one vector, for methods that exchange models."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from .. import buffer_pool
from ..stream.tensors import flat_array, to_tensor
from .step_hooks import innermost, unwrap_optimizer
from .tensors import COMPILED, FLOATS, check_device, check_parallelism, plain_name, write

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from torch import Tensor

    from ..stream.arrays import Values


class FlatParameters:
    """Some parameters of a model, joined in the order of their names.

    Args:
        tensors: Parameters of one dtype, by name.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.names = tuple(sorted(tensors))
        self._tensors = [tensors[name] for name in self.names]
        sizes = (p.numel() for p in self._tensors)
        self._offsets: list[int] = [0, *itertools.accumulate(sizes)]

    @property
    def size(self) -> int:
        """Number of values."""
        return self._offsets[-1]

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.size * int(self._tensors[0].element_size())

    @property
    def layout(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each parameter."""
        named = zip(self.names, self._tensors, strict=True)
        return [(name, tuple(p.shape), str(p.dtype)) for name, p in named]

    @property
    def versions(self) -> list[int]:
        """Numbers that differ after a parameter has been modified in place."""
        return [p._version for p in self._tensors]

    @property
    def by_name(self) -> dict[str, Tensor]:
        """The parameters."""
        return dict(zip(self.names, self._tensors, strict=True))

    def is_all_of(self, optimizer: torch.optim.Optimizer) -> bool:
        """Return whether the optimizer has no other parameters."""
        known = {id(p) for p in self._tensors}
        groups = optimizer.param_groups
        return all(id(p) in known for group in groups for p in group["params"])

    def read(self) -> Values:
        """Return a copy of all values."""
        return buffer_pool.concatenate([flat_array(p) for p in self._tensors])

    def read_by_name(self) -> dict[str, Values]:
        """Return copies of the parameters."""
        parts = np.split(self.read(), self._offsets[1:-1])
        named = zip(self.names, self._tensors, parts, strict=True)
        return {name: part.reshape(tuple(p.shape)) for name, p, part in named}

    def write_by_name(self, values: Mapping[str, Values]) -> None:
        """Set all parameters."""
        with torch.no_grad():
            for name, p in zip(self.names, self._tensors, strict=True):
                write(p.detach(), to_tensor(values[name], like=p))

    def write(self, values: Values) -> None:
        """Set all values."""
        bounds = itertools.pairwise(self._offsets)
        with torch.no_grad():
            for p, (start, end) in zip(self._tensors, bounds, strict=True):
                write(p.detach(), to_tensor(values[start:end], like=p))


def parameters_of(module: torch.nn.Module, names: Container[str]) -> FlatParameters:
    """Return the parameters of these names."""
    named = ((plain_name(name), p) for name, p in module.named_parameters())
    return FlatParameters({name: p for name, p in named if name in names})


def trained_parameters(
    function: str, module: Any, optimizer: Any, *, other: str
) -> FlatParameters:
    """Return the parameters of a model that an optimizer updates.

    Args:
        function: Name of the call, for error messages.
        module: The model; no module of it may average gradients itself.
        optimizer: The optimizer; it must have all parameters that require gradients, and none
            of other models.
        other: What DDP models should use.

    Raises:
        TypeError: If an argument has the wrong type, or a parameter the wrong dtype.
        ValueError: If model and optimizer do not fit, or parameters are on several devices.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"{function}: model must be a torch.nn.Module, got {type(module).__name__}"
        )
    optimizer = unwrap_optimizer(function, optimizer)
    if (part := innermost(optimizer)) is not optimizer:
        raise ValueError(
            f"{function}: optimizer must keep the state of all parameters on every rank, got a "
            f"{type(optimizer).__name__}, which splits it over ranks; use "
            f"torch.optim.{type(part).__name__}(model.parameters(), ...)"
        )
    if isinstance(getattr(module, COMPILED, module), DistributedDataParallel):
        raise TypeError(
            f"{function}: model must not be a DistributedDataParallel, which averages the "
            f"gradients of all ranks; {other}"
        )
    check_parallelism(function, module, module.parameters())
    named = {plain_name(name): p for name, p in module.named_parameters()}
    owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [n for n, p in named.items() if p.requires_grad and id(p) not in owned]
    if missing:
        raise ValueError(
            f"{function}: optimizer must have all parameters of the model, got one without "
            f"{missing[0]!r}; construct it with model.parameters()"
        )
    trained = {name: p for name, p in named.items() if id(p) in owned}
    if not trained or len(trained) < len(owned):
        raise ValueError(
            f"{function}: optimizer must have parameters of the model only, got "
            f"{len(owned) - len(trained)} others; construct it with model.parameters()"
        )
    _check_types(function, trained)
    return FlatParameters(trained)


def _check_types(function: str, named: Mapping[str, Tensor]) -> None:
    for name, p in named.items():
        check_device(function, name, p)
        if p.dtype not in FLOATS:
            raise TypeError(
                f"{function}: parameter {name!r} must be float32 or float64, got {p.dtype}; "
                f"keep the model in float32 and use torch.autocast"
            )
    for what in ("dtype", "device"):
        found = sorted({str(getattr(p, what)) for p in named.values()})
        if len(found) > 1:
            raise ValueError(
                f"{function}: all parameters must have the same {what}, got "
                f"{', '.join(found)}; convert the model with model.to(...)"
            )
