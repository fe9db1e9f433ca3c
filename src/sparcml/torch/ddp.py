"""compress: gradient compression for a DDP model."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..aggregate import Dense, as_method
from ..aggregate.frozen_adam import FrozenAdam
from ..startup import from_group
from .adam_updates import with_settings
from .agreement import agree_on_arguments, reporting_errors
from .clipping import Clip
from .ddp_handle import AutoDDPHandle, DDPHandle, discard_copies, register, unwrapped
from .dense_reducer import DenseReducer
from .handle import shapes_of, warn_if_small
from .hook import Hook
from .recommended import RECOMMENDED, check_optimizer, recommended_for, unsuitable_layers
from .reducer import GradientReducer
from .step_hooks import unwrap_optimizer
from .tensors import COMPILED, check_device, check_parallelism, excluded_names, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..aggregate import Method
    from ..quantize import Quantizer
    from ..sparsify import Sparsifier
    from .handle import Handle

AUTO = "auto"
MB = 2**20
_compressed: WeakSet[DistributedDataParallel] = WeakSet()  # models that have a handle


def compress(
    model: torch.nn.Module,
    method: Method | Quantizer | Sparsifier | str,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    leave: str | Iterable[str] | None = None,
    clip: float | None = None,
    clip_each: float | None = None,
    scaler: Any = None,
    timeout: float | None = None,
) -> Handle:
    """Average the gradients of a DDP model by a method, during the backward pass. Collective.

    All ranks call it before the first backward pass. Small and one-dimensional tensors and
    excluded ones are not compressed and are sent together; sparse gradients of embeddings are
    sent without loss.

    Args:
        model: A `DistributedDataParallel`, or a compiled one.
        method: An aggregation method such as `sparcml.Compressed(quantize=sparcml.QSGD(4))`,
            a quantizer or sparsifier, with error feedback around it; "recommended", which is
            `recommended(optimizer)`; or "auto": the first steps run plain DDP and are measured;
            then a method is chosen, or none, which leaves DDP as it is. `handle.explain()`
            gives the reason.
        optimizer: The optimizer of the model, or a wrapper such as Accelerate's around it.
            Residuals then follow its learning rate, and methods that compress updates of Adam
            instead of gradients make its step.
        leave: Names or patterns ("head.*") of parameters to exclude from compression. Default:
            recurrent layers with `TernGrad` and `PowerSGD`, which lose accuracy there; otherwise
            none.
        clip: Limit to the norm of the full gradient, enforced with the norm of the previous
            step.
        clip_each: Limit to the norm of each tensor.
        scaler: The torch.amp.GradScaler in use. The residual is kept without the loss scale,
            and a step with gradients that are not finite leaves the state unchanged.
        timeout: Seconds to wait for a rank, busy or not. Default: for a rank that is dead or
            stopped SPARCML_TIMEOUT, or 30; for a busy one that of the process group.

    Returns:
        A handle with `stats`, `explain()`, `change(method)`, `state_dict()`,
        `load_state_dict()` and `close()`.

    Raises:
        TypeError: If the model is not a DDP model, or the method is not a method.
        RuntimeError: If the model has a communication hook.
        MismatchError: If ranks pass different arguments, or a rank does not call it.
    """
    ddp = unwrapped(model)
    with reporting_errors("compress", getattr(ddp, "process_group", None)):
        _check_model(ddp)
        _check_compiled(model, ddp)
        if optimizer is not None:
            optimizer = unwrap_optimizer("compress", optimizer)
        if method == RECOMMENDED:
            method = recommended_for("compress", optimizer)
        first = Dense() if method == AUTO else as_method("compress", method)
        if optimizer is not None:
            check_optimizer("compress", first, optimizer, stacklevel=3)
        if leave is None:
            leave = unsuitable_layers("compress", first, ddp.module, stacklevel=3)
        if isinstance(first, FrozenAdam):
            first = with_settings("compress", first, optimizer, scaler, clip or clip_each)
        parameters = ddp.module.named_parameters()
        names = {p: plain_name(n) for n, p in parameters if p.requires_grad}
        for parameter, name in names.items():
            check_device("compress", name, parameter)
        if optimizer is not None:
            _check_parameters(optimizer, names)
        excluded = excluded_names("compress", list(names.values()), leave)
        warn_if_small(first, shapes_of(names), excluded, stacklevel=3)
        limits = Clip(clip, clip_each)
        if method == AUTO and limits != Clip():
            raise ValueError(
                "compress: clip and clip_each must be None with 'auto', which may leave DDP as "
                "it is; pass a method, or use torch.nn.utils.clip_grad_norm_ after backward()"
            )
    if scaler is not None and not scaler.is_enabled():
        scaler = None  # it neither scales nor skips
    arguments = {
        "method": method,
        "optimizer": optimizer and type(optimizer),
        "leave": sorted(excluded),
        "clip": clip,
        "clip_each": clip_each,
        "scaler": scaler and type(scaler),
    }
    agree_on_arguments("compress", ddp.process_group, arguments, timeout)
    comm = from_group(ddp.process_group, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(comm.close)
        reducer = GradientReducer(comm, first, excluded, limits)
        reducer.reuses_state = True  # DDP cannot continue after an error
        dense = DenseReducer(comm, ddp.process_group)
        hook = Hook(names, reducer, dense, scaler, find_unused=ddp.find_unused_parameters)
        undo.callback(hook.close)
        handle: DDPHandle
        if method == AUTO:
            handle = AutoDDPHandle(reducer, hook, names, ddp, optimizer)
        else:
            handle = DDPHandle(reducer, hook, names, optimizer)
            undo.callback(handle.close)
            register(ddp, hook)  # last, because DDP cannot remove it
        undo.pop_all()
    _compressed.add(ddp)
    return handle


def _check_parameters(
    optimizer: torch.optim.Optimizer, names: Mapping[torch.Tensor, str]
) -> None:
    groups = optimizer.param_groups
    if not any(p in names for group in groups for p in group["params"]):
        raise ValueError(
            "compress: optimizer must have parameters of the model, got one that has none of "
            "them; create it from this model"
        )


def _check_compiled(model: torch.nn.Module, ddp: DistributedDataParallel) -> None:
    """Raise where torch fails an assertion in the first forward pass."""
    if ddp.bucket_bytes_cap >= dist._DEFAULT_FIRST_BUCKET_BYTES:
        return
    is_compiled = any(hasattr(m, COMPILED) for m in (model, *ddp.modules()))
    if is_compiled and torch._dynamo.config.optimize_ddp in (True, "ddp_optimizer"):
        raise ValueError(
            f"compress: bucket_cap_mb of a compiled model must be at least 1, got "
            f"{ddp.bucket_bytes_cap / MB:.3g}, which torch.compile does not support; use "
            f"larger buckets, or set torch._dynamo.config.optimize_ddp = False"
        )


def _check_model(ddp: torch.nn.Module) -> None:
    check_parallelism("compress", ddp, ddp.parameters())
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(
            f"compress: model must be a torch.nn.parallel.DistributedDataParallel, got "
            f"{type(ddp).__name__}; wrap the model in it first, or pass its optimizer to "
            f"sparcml.torch.wrap"
        )
    if ddp.mixed_precision is not None:
        raise ValueError(
            "compress: mixed_precision of the DDP model must be None, since it uses DDP's only "
            "communication hook; use torch.autocast, or a model in bfloat16"
        )
    discard_copies(ddp)
    if ddp in _compressed:
        raise RuntimeError(
            "compress: this model has a communication hook already, and DDP accepts only one; "
            "use handle.change(method) to change the method"
        )
    hook = ddp._get_ddp_logging_data().get("comm_hook")  # also one that is built into torch
    if ddp._comm_hooks:
        hook = getattr(ddp._comm_hooks[0][0], "__name__", "of another library")
    if hook:
        raise RuntimeError(
            f"compress: this model has a communication hook already ({hook}), and DDP accepts "
            f"only one; create the model again without it"
        )
