"""Means over ranks of what an optimizer remembers: moments of Adam, momentum buffers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..stream.tensors import flat_array, to_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..communicator.communicator import Communicator


def mean_optimizer_state(
    comm: Communicator, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Return the optimizer's state_dict with the means of its float tensors. Collective.

    Counts of steps are those of this rank.
    """
    state: dict[str, Any] = copy.deepcopy(optimizer.state_dict())
    _average(comm, state["state"].values())
    return state


def average_optimizer_state(comm: Communicator, optimizer: torch.optim.Optimizer) -> None:
    """Replace the float tensors of the optimizer's state by their means. Collective."""
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    _average(comm, [optimizer.state[p] for p in parameters if p in optimizer.state])


def _average(comm: Communicator, entries: Iterable[dict[str, Any]]) -> None:
    """Average all float tensors in one allreduce; numbers, also as tensors, stay."""
    tensors = [tensor for entry in entries for tensor in _tensors(entry)]
    if not tensors:
        return
    flat = np.concatenate([flat_array(tensor) for tensor in tensors])
    mean = np.array(comm.allreduce(flat, op="mean"))
    start = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(to_tensor(mean[start : start + tensor.numel()], like=tensor))
            start += tensor.numel()


def _tensors(entry: dict[str, Any]) -> Iterator[torch.Tensor]:
    for key in sorted(entry):
        value = entry[key]
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim:
            yield value
