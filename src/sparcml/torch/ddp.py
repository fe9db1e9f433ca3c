"""compress: what a user adds to a DDP script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.nn.parallel import DistributedDataParallel

from ..aggregate import Method
from ..arguments import seconds_to_wait
from ..ranks import from_group
from .clipping import Clip
from .handle import Handle
from .hook import Hook
from .ledger import Ledger
from .native import Native
from .rules import left_alone
from .tensors import check_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import torch
    from torch import Tensor

    from .buckets import Layout


def compress(
    model: torch.nn.Module,
    method: Method,
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
        method: Such as `sparcml.Compressed(sparcml.TopK(0.005), sparcml.QSGD(8))`.
        leave: Names or patterns of parameters ("head.*") not to compress.
        clip: Limit to the norm of the whole gradient, enforced by the norm of the step
            before.
        clip_each: Limit to the norm of each tensor.
        scaler: The torch.amp.GradScaler that is used with the model: what is owed is kept
            unscaled, and a step that is not finite everywhere leaves no trace.
        timeout: Seconds after which a rank that does not answer is an error; else
            SPARCML_TIMEOUT, else 30.
    """
    ddp = getattr(model, "_orig_mod", model)
    _check_model(ddp)
    if not isinstance(method, Method):
        raise TypeError(
            f"compress: expected a method such as sparcml.Compressed(sparcml.TopK(0.01)), "
            f"got {method!r}"
        )
    names = {p: n for n, p in ddp.module.named_parameters() if p.requires_grad}
    for parameter, name in names.items():
        check_device(name, parameter)
    left = left_alone(list(names.values()), leave)
    seconds = seconds_to_wait(timeout)
    comm = from_group(ddp.process_group, timeout=seconds)
    ledger = Ledger(comm, method, left, Clip(clip, clip_each))
    native = Native(comm, ddp.process_group, seconds)
    hook = Hook(names, ledger, native, scaler)
    ddp.register_comm_hook(None, lambda state, bucket: hook(bucket))  # noqa: ARG005
    return Hooked(ledger, hook, names)


def _check_model(ddp: torch.nn.Module) -> None:
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(
            f"compress: expected a torch.nn.parallel.DistributedDataParallel, got "
            f"{type(ddp).__name__}; wrap the model in it first, or give its optimizer to "
            f"sparcml.torch.wrap"
        )
    if ddp._comm_hooks:
        raise RuntimeError(
            "compress: this model has a communication hook already, and DDP takes only one; "
            "to go on with another method use handle.change(method)"
        )


class Hooked(Handle):
    """The compression of a DDP model."""

    def __init__(self, ledger: Ledger, hook: Hook, names: Mapping[Tensor, str]) -> None:
        super().__init__(ledger, names)
        self._hook = hook

    def close(self) -> None:
        """End the thread and the connections; there is no step after it."""
        self._hook.close()
        super().close()

    def _between_steps(self, work: Callable[[], Any]) -> Any:
        return self._hook.run(work)

    def _get_layout(self) -> Layout:
        return self._hook.layout or self._hook.seen

    def _set_layout(self, layout: Layout) -> None:
        self._hook.layout = layout or None
