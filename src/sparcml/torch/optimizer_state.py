"""Means over ranks of what an optimizer remembers: moments of Adam, momentum buffers."""

from __future__ import annotations

import copy
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import MismatchError
from ..stream.tensors import flat_array, to_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..communicator.communicator import Communicator


def mean_optimizer_state(
    comm: Communicator, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Return the optimizer's state_dict with the means of its float tensors. Collective.

    Counts of steps are those of this rank.

    Raises:
        MismatchError: If ranks have state of different parameters.
    """
    state: dict[str, Any] = copy.deepcopy(optimizer.state_dict())
    _average(comm, state["state"])
    return state


def average_optimizer_state(comm: Communicator, optimizer: torch.optim.Optimizer) -> None:
    """Replace the float tensors of the optimizer's state by their means. Collective.

    Raises:
        MismatchError: If ranks have state of different parameters.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbered = enumerate(parameters)
    _average(comm, {i: optimizer.state[p] for i, p in numbered if p in optimizer.state})


def _average(comm: Communicator, entries: Mapping[int, dict[str, Any]]) -> None:
    """Average all float tensors in one allreduce; numbers, also as tensors, stay.

    Args:
        comm: Communicator.
        entries: State by the number of the parameter.
    """
    tensors = [tensor for number in sorted(entries) for tensor in _tensors(entries[number])]
    layout = [(i, key, v.shape) for i in sorted(entries) for key, v in _named(entries[i])]
    check = float(zlib.crc32(repr(layout).encode()))
    if len(set(comm.allgather(check))) > 1:  # on all ranks
        raise MismatchError(
            f"rank {comm.rank}: the optimizer's state cannot be averaged, because ranks have "
            f"state of different parameters (this one of {len(entries)}); all ranks must use the "
            f"same parameters until then, or pass optimizer_state='local'"
        )
    if not tensors:
        return
    flat = np.concatenate([flat_array(tensor) for tensor in tensors])
    mean = np.array(comm.allreduce(flat, op="mean"))
    start = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(to_tensor(mean[start : start + tensor.numel()], like=tensor))
            start += tensor.numel()


def _tensors(entry: dict[str, Any]) -> list[torch.Tensor]:
    return [tensor for _, tensor in _named(entry)]


def _named(entry: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for key in sorted(entry):
        value = entry[key]
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim:
            yield key, value
