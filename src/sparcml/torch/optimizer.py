"""wrap: training without DDP, with gradients averaged before each optimizer step."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from .. import kernels
from ..aggregate import as_method
from ..aggregate.frozen_adam import FrozenAdam
from ..communicator.collective_errors import find_difference
from ..startup import from_group
from ..stream.tensors import on_host
from .adam_updates import with_settings
from .agreement import agree_on_arguments, reporting_errors
from .clipping import Clip
from .handle import shapes_of, warn_if_small
from .optimizer_handle import OptimizerHandle
from .recommended import RECOMMENDED, check_optimizer, recommended_for
from .reducer import GradientReducer
from .step_hooks import unwrap_optimizer, users_of
from .tensors import COMPILED, check_device, check_parallelism, excluded_names, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..sparsify import Sparsifier


def wrap(
    optimizer: torch.optim.Optimizer,
    method: Method | Quantizer | Sparsifier | str,
    *,
    model: torch.nn.Module | None = None,
    group: Any = None,
    leave: str | Iterable[str] = (),
    clip: float | None = None,
    scaler: Any = None,
    timeout: float | None = None,
) -> OptimizerHandle:
    """Let an optimizer average the gradients of all ranks before each step. Collective.

    All ranks call it with equal weights. The optimizer stays the same object: schedulers,
    GradScalers and `optimizer.step()` work as before. Sparse gradients, such as those of
    `nn.Embedding(sparse=True)`, are sent without loss and stay sparse, so that time and
    memory depend on the rows in use.

    Args:
        optimizer: An optimizer of torch, or a wrapper such as Accelerate's around it.
        method: An aggregation method such as `sparcml.Compressed(quantize=sparcml.QSGD(4))`,
            a quantizer or sparsifier, with error feedback around it, or "recommended", which is
            `recommended(optimizer)`.
        model: Model that gives the parameters their names; without it they are numbered.
        group: Process group. Default: the default group.
        leave: Names or patterns ("head.*") of parameters to exclude from compression.
        clip: Limit to the norm of the full mean gradient, as of
            `torch.nn.utils.clip_grad_norm_`.
        scaler: The torch.amp.GradScaler in use. Call `handle.aggregate()` before
            `scaler.step(optimizer)`, so that all ranks apply or skip the step together.
        timeout: Seconds to wait for a rank, busy or not. Default: for a rank that is dead or
            stopped SPARCML_TIMEOUT, or 30; for a busy one that of the process group.

    Raises:
        TypeError: If an argument has the wrong type, or the model is a DDP model.
        ValueError: If ranks start with different weights.
        MismatchError: If ranks pass different arguments, or a rank does not call it.
    """
    if scaler is not None and not scaler.is_enabled():
        scaler = None  # it neither scales nor skips
    with reporting_errors("wrap", group):
        inner = unwrap_optimizer("wrap", optimizer)
        if method == RECOMMENDED:
            method = recommended_for("wrap", inner)
        method = as_method("wrap", method)
        check_optimizer("wrap", method, inner, stacklevel=3)
        if isinstance(method, FrozenAdam):
            method = with_settings("wrap", method, inner, scaler, clip)
        if any(isinstance(user, OptimizerHandle) for user in users_of(optimizer)):
            raise RuntimeError(
                "wrap: this optimizer is wrapped already, and gradients would be averaged twice; "
                "use handle.change(method) to change the method"
            )
        if isinstance(getattr(model, COMPILED, model), DistributedDataParallel):
            raise TypeError(
                "wrap: model must not be a DistributedDataParallel, which averages gradients "
                "itself; use sparcml.torch.compress(model, method)"
            )
        names = _names(inner, model)
        check_parallelism("wrap", model, names)
        excluded = excluded_names("wrap", list(names.values()), leave)
        warn_if_small(method, shapes_of(names), excluded, stacklevel=3)
        limit = Clip(clip).norm
    arguments = {
        "method": method,
        "leave": sorted(excluded),
        "clip": clip,
        "scaler": scaler and type(scaler),
    }
    agree_on_arguments("wrap", group, arguments, timeout)
    comm = from_group(group, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(comm.close)
        _check_same_weights(comm, names)
        reducer = GradientReducer(comm, method, excluded)
        handle = OptimizerHandle(optimizer, reducer, names, limit, scaler)
        undo.pop_all()
    return handle


def _names(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module | None
) -> dict[Tensor, str]:
    named = () if model is None else model.named_parameters()
    of_model = {p: plain_name(n) for n, p in named}
    names = {
        p: of_model.get(p, f"{g}.{i}")
        for g, group in enumerate(optimizer.param_groups)
        for i, p in enumerate(group["params"])
    }
    for parameter, name in names.items():
        check_device("wrap", name, parameter)
    return names


def _check_same_weights(comm: Communicator, names: Mapping[Tensor, str]) -> None:
    """Raise if ranks start with different weights, which would never become equal."""
    crc = 0
    for parameter in names:
        data = parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        crc = kernels.crc32c(on_host(data), crc)
    difference = find_difference(comm, {"weights": crc})
    if difference is not None:
        raise ValueError(
            f"wrap: rank {comm.rank} and rank {difference[1]} start with different weights; call "
            f"torch.manual_seed with the same seed before creating the model, or broadcast the "
            f"weights of rank 0 with torch.distributed.broadcast"
        )
