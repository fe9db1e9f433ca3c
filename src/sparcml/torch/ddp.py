"""compress: what a user adds to a DDP script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.nn.parallel import DistributedDataParallel

from ..aggregate import Dense, Method
from ..communicator.arguments import resolve_timeout
from ..startup import from_group
from .clipping import Clip
from .ddp_handle import AutoDDPHandle, DDPHandle, inside, register
from .dense_reducer import DenseReducer
from .hook import Hook
from .reducer import GradientReducer
from .rules import excluded_names
from .tensors import check_device

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

    from .handle import Handle

AUTO = "auto"
MARK = "_compressed_by_sparcml"  # on a DDP model, from the first call on


def compress(
    model: torch.nn.Module,
    method: Method | str,
    *,
    leave: str | Iterable[str] = (),
    clip: float | None = None,
    clip_each: float | None = None,
    scaler: Any = None,
    timeout: float | None = None,
) -> Handle:
    """Have a DDP model average its gradients by a method, during the backward pass.

    A collective call: all ranks make it, before the first backward pass. Gradients are
    divided by the number of ranks once. Small and one-dimensional tensors, and those to leave
    alone, travel as they are, together; sparse gradients of embeddings without loss.

    Args:
        model: A `DistributedDataParallel`, or one that was compiled.
        method: Such as `sparcml.Compressed(sparcml.TopK(0.005), sparcml.QSGD(8))`, or
            "auto": the first steps are plain DDP's, and are measured; then a method is
            chosen, or none, which leaves DDP as it is. `handle.explain()` says why.
        leave: Names or patterns of parameters ("head.*") not to compress.
        clip: Limit to the norm of the whole gradient, enforced by the norm of the step
            before.
        clip_each: Limit to the norm of each tensor.
        scaler: The torch.amp.GradScaler that is used with the model: what is owed is kept
            unscaled, and a step that is not finite everywhere leaves no trace.
        timeout: Seconds after which a rank that does not answer is an error; else
            SPARCML_TIMEOUT, else 30.
    """
    ddp = inside(model)
    _check_model(ddp)
    if not isinstance(method, Method) and method != AUTO:
        raise TypeError(
            f"compress: expected a method such as sparcml.Compressed(sparcml.TopK(0.01)), or "
            f"{AUTO!r}, got {method!r}"
        )
    names = {p: n for n, p in ddp.module.named_parameters() if p.requires_grad}
    for parameter, name in names.items():
        check_device(name, parameter)
    left = excluded_names(list(names.values()), leave)
    limits = Clip(clip, clip_each)
    if method == AUTO and limits != Clip():
        raise ValueError(
            "compress: auto may leave DDP as it is, which clips nothing; give a method by "
            "name, or use torch.nn.utils.clip_grad_norm_ after backward()"
        )
    if scaler is not None and not scaler.is_enabled():
        scaler = None  # it scales nothing and skips nothing
    seconds = resolve_timeout(timeout)
    comm = from_group(ddp.process_group, timeout=seconds)
    begun = method if isinstance(method, Method) else Dense()
    reducer = GradientReducer(comm, begun, left, limits)
    setattr(ddp, MARK, True)
    native = DenseReducer(comm, ddp.process_group, seconds)
    hook = Hook(names, reducer, native, scaler, unused=ddp.find_unused_parameters)
    if method == AUTO:
        return AutoDDPHandle(reducer, hook, names, model)
    register(model, hook)
    return DDPHandle(reducer, hook, names)


def _check_model(ddp: torch.nn.Module) -> None:
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(
            f"compress: expected a torch.nn.parallel.DistributedDataParallel, got "
            f"{type(ddp).__name__}; wrap the model in it first, or give its optimizer to "
            f"sparcml.torch.wrap"
        )
    if ddp._comm_hooks or hasattr(ddp, MARK):
        raise RuntimeError(
            "compress: this model has a communication hook already, and DDP takes only one; "
            "to go on with another method use handle.change(method)"
        )
