"""Buffers of a model as one vector: running statistics that ranks average."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..stream.tensors import on_host, to_tensor
from .tensors import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from ..communicator.communicator import Communicator
    from ..decentralized import Topology
    from ..stream.arrays import Values

MEAN, VARIANCE = "running_mean", "running_var"


class RunningBuffers:
    """Floating-point buffers that belong to a model's state_dict, as a float64 vector.

    A running variance is stored as E[x^2] = running_var + running_mean^2 of the same module.
    The mean of these over ranks is that of all data, so that the differences between the means
    of the ranks become part of the variance.

    Args:
        module: The model.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._places = sorted(_places(module), key=lambda place: place[0])
        sizes = (getattr(owner, name).numel() for _, owner, name in self._places)
        self._offsets: list[int] = [0, *itertools.accumulate(sizes)]

    @property
    def size(self) -> int:
        """Number of values."""
        return self._offsets[-1]

    @property
    def layout(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each buffer."""
        return [(n, tuple(getattr(owner, own).shape)) for n, owner, own in self._places]

    def read(self) -> Values:
        """Return a copy of all values."""
        parts = [np.empty(0)]
        for _, owner, name in self._places:
            values = _values(getattr(owner, name))
            if _has_mean(owner, name):
                values = values + np.square(_values(getattr(owner, MEAN)))
            parts.append(values)
        return np.concatenate(parts)

    def write(self, values: Values) -> None:
        """Set all values."""
        places = zip(self._places, itertools.pairwise(self._offsets), strict=True)
        parts = {(id(owner), n): values[a:b] for (_, owner, n), (a, b) in places}
        with torch.no_grad():
            for _, owner, name in self._places:
                part = parts[id(owner), name]
                if _has_mean(owner, name):
                    part = np.maximum(part - np.square(parts[id(owner), MEAN]), 0)
                buffer = getattr(owner, name)
                buffer.copy_(to_tensor(np.array(part), like=buffer))

    def average(self, comm: Communicator) -> None:
        """Replace the values by their mean over all ranks. Collective."""
        if self.size:
            self.write(np.array(comm.allreduce(self.read(), op="mean")))

    def mix(self, comm: Communicator, topology: Topology, step: int) -> None:
        """Replace the values by their weighted mean over the neighbours. Collective."""
        if not self.size:
            return
        # A row of weights may not add up to 1 if the topology is column-stochastic only.
        own = np.append(self.read(), 1.0)
        mixed = comm.neighbor_allreduce(own, topology, step)
        self.write(mixed[:-1] / mixed[-1])


def broadcast_module(comm: Communicator, module: torch.nn.Module) -> None:
    """Replace all parameters and buffers by those of rank 0. Collective."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        groups.setdefault(_wide(tensor), []).append(tensor)
    for dtype in sorted(groups.keys() - {None}, key=str):
        flat = [on_host(t.detach().to(dtype)).reshape(-1) for t in groups[dtype]]
        values = np.array(comm.broadcast(np.concatenate(flat)))
        ends = itertools.accumulate(part.size for part in flat)
        with torch.no_grad():
            for tensor, end in zip(groups[dtype], ends, strict=True):
                part = values[end - tensor.numel() : end]
                tensor.copy_(to_tensor(part, like=tensor))


def _wide(tensor: Tensor) -> Any:
    """Return a dtype that represents all values of a tensor and can be sent, or None."""
    if tensor.is_complex():
        return None
    if not tensor.is_floating_point():
        return torch.int64
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _places(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module, str]]:
    """Yield the full name, the module and the name of each buffer."""
    for prefix, owner in module.named_modules():
        for name, buffer in owner.named_buffers(recurse=False):
            saved = name not in owner._non_persistent_buffers_set
            if saved and buffer.is_floating_point():
                yield plain_name(f"{prefix}.{name}" if prefix else name), owner, name


def _has_mean(owner: torch.nn.Module, name: str) -> bool:
    if name != VARIANCE:
        return False
    mean = owner._buffers.get(MEAN)
    return mean is not None and bool(mean.shape == owner._buffers[VARIANCE].shape)


def _values(tensor: Tensor) -> Values:
    values: Values = on_host(tensor.detach().double()).reshape(-1)
    return values
