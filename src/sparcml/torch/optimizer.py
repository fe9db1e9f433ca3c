"""wrap: training without DDP, with gradients averaged right before the optimizer's step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from .. import kernels
from ..aggregate import Method
from ..startup import from_group
from .clipping import Clip
from .optimizer_handle import OptimizerHandle
from .reducer import GradientReducer
from .rules import excluded_names
from .tensors import check_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor

    from ..communicator.communicator import Communicator


def wrap(
    optimizer: torch.optim.Optimizer,
    method: Method,
    *,
    model: torch.nn.Module | None = None,
    group: Any = None,
    leave: str | Iterable[str] = (),
    clip: float | None = None,
    scaler: Any = None,
    timeout: float | None = None,
) -> OptimizerHandle:
    """Have an optimizer average the gradients of all ranks before each of its steps.

    A collective call: all ranks make it, with the same weights. The optimizer stays the same
    object: schedulers, GradScalers and `optimizer.step()` work as before. Sparse
    gradients, such as those of `nn.Embedding(sparse=True)`, travel without loss and stay
    sparse, so that time and memory follow the rows that were used.

    Args:
        optimizer: Any of torch's kind.
        method: Such as `sparcml.Compressed(sparcml.TopK(0.005), sparcml.QSGD(8))`.
        model: Gives parameters their names; without it they are numbered.
        group: The process group; the default one if None.
        leave: As for `compress`.
        clip: Limit to the norm of the whole mean gradient, as
            `torch.nn.utils.clip_grad_norm_` has it.
        scaler: The torch.amp.GradScaler in use: call `handle.aggregate()` before
            `scaler.step(optimizer)`, so that all ranks make or skip the step together.
        timeout: As for `compress`.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"wrap: expected an optimizer, got {type(optimizer).__name__}")
    if not isinstance(method, Method):
        raise TypeError(
            f"wrap: expected a method such as sparcml.Compressed(sparcml.TopK(0.01)), got "
            f"{method!r}"
        )
    hooks = optimizer._optimizer_step_pre_hooks.values()
    if any(isinstance(getattr(hook, "__self__", None), OptimizerHandle) for hook in hooks):
        raise RuntimeError(
            "wrap: this optimizer is wrapped already, and gradients would be averaged twice; "
            "to go on with another method use handle.change(method)"
        )
    if isinstance(model, DistributedDataParallel):
        raise TypeError(
            "wrap: this model is a DistributedDataParallel, which averages gradients itself; "
            "use sparcml.torch.compress(model, method)"
        )
    if scaler is not None and not scaler.is_enabled():
        scaler = None  # it scales nothing and skips nothing
    names = _names(optimizer, model)
    left = excluded_names(list(names.values()), leave)
    limit = Clip(clip).norm
    comm = from_group(group, timeout=timeout)
    _check_same_weights(comm, names)
    return OptimizerHandle(
        optimizer, GradientReducer(comm, method, left), names, limit, scaler
    )


def _names(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module | None
) -> dict[Tensor, str]:
    known = {} if model is None else {p: n for n, p in model.named_parameters()}
    names = {
        p: known.get(p, f"{g}.{i}")
        for g, members in enumerate(optimizer.param_groups)
        for i, p in enumerate(members["params"])
    }
    for parameter, name in names.items():
        check_device(name, parameter)
    return names


def _check_same_weights(comm: Communicator, names: Mapping[Tensor, str]) -> None:
    """Ranks that begin at different weights never come together."""
    crc = 0
    for parameter in names:
        bits = parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        crc = kernels.crc32c(bits.numpy(), crc)
    crcs = np.array(comm.allgather(np.array([crc], np.float64))).reshape(-1)
    others = np.flatnonzero(crcs != crc)
    if len(others):
        raise ValueError(
            f"wrap: rank {comm.rank} and rank {others[0]} begin with different weights; set the "
            f"same torch.manual_seed before making the model, or send those of rank 0 with "
            f"torch.distributed.broadcast"
        )
