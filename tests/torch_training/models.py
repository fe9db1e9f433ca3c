"""Small models and data that all ranks know, and how a rank trains them."""

from __future__ import annotations

import contextlib

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import sparcml
from tests.aggregate import gradients

STEPS = 4


@contextlib.contextmanager
def group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(20, 150), torch.nn.Tanh(), torch.nn.Linear(150, 120),
        torch.nn.Tanh(), torch.nn.Linear(120, 5),
    )  # fmt: skip


def batch(rank, step, rows=8):
    draw = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(rows, 20, generator=draw), torch.randn(rows, 5, generator=draw)


def loss_of(model, rank, step):
    if isinstance(getattr(model, "module", model), Known):
        return model(known(rank, step))
    x, y = batch(rank, step)
    return torch.nn.functional.mse_loss(model(x).float(), y)


def ddp(module=None, **options):
    """Several buckets."""
    return DDP(module or mlp(), bucket_cap_mb=0.03, **options)


def train(model, rank, steps=range(STEPS), lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
    return weights(model)


def weights(model):
    return {n: p.detach().clone() for n, p in model.module.named_parameters()}


def same(a, b, **tolerance):
    for name in a:
        torch.testing.assert_close(
            a[name], b[name], **(tolerance or {"rtol": 0, "atol": 0})
        )


def compressed(method, module=None, *, options=None, **rules):
    model = ddp(module, **(options or {}))
    return model, sparcml.torch.compress(model, method, **rules)


class Known(torch.nn.Module):  # type: ignore[misc]
    """Its gradients are those of tests.aggregate.gradients, whatever its weights are."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        for name, shape in gradients.SHAPES.items():
            self.register_parameter(
                name, torch.nn.Parameter(torch.zeros(shape, dtype=dtype))
            )

    def forward(self, gradients):
        return sum((p * gradients[n]).sum() for n, p in self.named_parameters())


def known(rank, step):
    return {n: torch.from_numpy(g) for n, g in gradients.gradient(rank, step).items()}
