"""Methods of the examples: plain DDP, torch's own hooks, or a method of sparcml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import sparcml
from sparcml import DGC, NUQSGD, QSGD, Compressed, OneBit, PowerSGD, TernGrad, TopK

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

MOMENTUM = 0.9
PLAIN_STEPS = 2  # before torch's PowerSGD starts; it must not compress the first step
ONE_BUCKET = 1 << 14  # MB
WARM_UP = 40  # the warm-up is 1 / 40 of the steps

OURS: dict[str, sparcml.Method | str] = {
    "topk": Compressed(TopK(0.005), QSGD(8)),
    "topk1": Compressed(TopK(0.01), QSGD(8)),
    "topk8of512": Compressed(TopK(k=8, bucket=512)),
    "topk16of512": Compressed(TopK(k=16, bucket=512)),
    "dgc": DGC(0.001, momentum=MOMENTUM, quantize=QSGD(8)),
    "qsgd": Compressed(quantize=QSGD(4), error_feedback=False),
    "nuqsgd": Compressed(quantize=NUQSGD(4), error_feedback=False),
    "terngrad": Compressed(quantize=TernGrad(), error_feedback=False),
    "onebit": Compressed(quantize=OneBit()),
    "powersgd": PowerSGD(rank=4),
    "auto": "auto",
}
THEIRS = ("dense", "fp16", "torch-powersgd")
METHODS = (*THEIRS, *OURS)


def replicated(module: nn.Module, name: str) -> DistributedDataParallel:
    """Return a model in DDP, before `connect`.

    torch's PowerSGD gets one bucket: it runs several allreduces per bucket from callbacks, and
    over gloo those of two buckets start in different orders on different ranks, which fails.
    """
    buckets = ONE_BUCKET if name == "torch-powersgd" else None
    return DistributedDataParallel(module, bucket_cap_mb=buckets)


def connect(
    model: DistributedDataParallel, name: str, steps: int
) -> Callable[[int], float]:
    """Let a DDP model average its gradients by a method.

    Args:
        model: A DDP model.
        name: Name of the method.
        steps: Total number of steps, for methods with a warm-up.

    Returns:
        A function from the number of completed steps to the bytes that this rank has sent.
        Torch's own allreduce counts as a ring.
    """
    ranks = dist.get_world_size()
    values = sum(p.numel() for p in model.parameters())
    ring = 2 * (ranks - 1) / ranks
    if name == "dense":
        return lambda done: 4 * ring * values * done
    if name == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return lambda done: 2 * ring * values * done
    if name == "torch-powersgd":
        state: Any = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=4, start_powerSGD_iter=PLAIN_STEPS
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return lambda done: (
            4
            * ring
            * (values * min(done, PLAIN_STEPS) + state.total_numel_after_compression)
        )
    method = OURS[name]
    if isinstance(method, DGC):
        method = replace(method, warm_up=max(1, steps // WARM_UP))
    handle = sparcml.torch.compress(model, method)
    dense = 4 * ring * values  # per step, if "auto" leaves DDP as it is
    return lambda done: handle.stats.bytes + dense * (done - handle.stats.steps)
