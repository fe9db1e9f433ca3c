"""Large batches: a rate that grows with them, a warm-up, and optimizers made for them.

    torchrun --nproc-per-node 2 examples/torch/large_batch.py --optimizer lars --method topk1

The batch is 8 times that of fashion_mnist.py, and so is the rate (linear scaling), to which it
rises in the first tenth of the steps. Rates are torch's own schedulers'; LARS, LAMB and SAM come
from the package pytorch-optimizer (pip install pytorch-optimizer). All of them get the mean
gradient that sparcml's hook has made: nothing in them knows of it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fashion_mnist
import torch
from hooks import METHODS, MOMENTUM, connect, replicated
from loop import batches, gathered, judged
from torch import distributed as dist
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loop import Task
    from torch import Tensor, nn

LARGER = 8
KINDS = ("sgd", "lars", "lamb", "sam")


def optimizer_for(kind: str, parameters: Iterable[Tensor], rate: float) -> Any:
    """One of those for large batches; `rate` is that of SGD."""
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=MOMENTUM)
    import pytorch_optimizer

    if kind == "lars":  # moves a layer by a part of its norm: rates of another size
        return pytorch_optimizer.LARS(
            parameters, lr=rate, momentum=MOMENTUM, trust_coefficient=0.02
        )
    if kind == "lamb":
        return pytorch_optimizer.Lamb(parameters, lr=rate / 40)
    return pytorch_optimizer.SAM(
        parameters, torch.optim.SGD, rho=0.05, lr=rate, momentum=MOMENTUM
    )


def scheduled(optimizer: Any, steps: int) -> SequentialLR:
    """Up from the rate of small batches in a tenth of the steps, then down to zero."""
    stepping = getattr(optimizer, "base_optimizer", optimizer)
    warm = max(1, steps // 10)
    up = LinearLR(stepping, 1 / LARGER, 1.0, warm)
    return SequentialLR(stepping, [up, CosineAnnealingLR(stepping, steps - warm)], [warm])


def step(task: Task, model: nn.Module, optimizer: Any, rows: Tensor) -> float:
    """One step; SAM takes its slope where this rank's own gradient leads to.

    The first of its two passes is not summed, so that each step sends as much as SGD's.
    """
    optimizer.zero_grad()
    if hasattr(optimizer, "first_step"):
        with model.no_sync():
            task.loss(model, rows).backward()
        optimizer.first_step(zero_grad=True)
    loss = task.loss(model, rows)
    loss.backward()
    if hasattr(optimizer, "second_step"):
        optimizer.second_step()
    else:
        optimizer.step()
    return float(loss)


def main() -> None:
    """Train on each rank; the first one prints."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--optimizer", choices=KINDS, default="sgd")
    methods = [name for name in METHODS if name != "dgc"]  # it is an optimizer itself
    options.add_argument("--method", choices=methods, default="topk1")
    options.add_argument("--data", type=Path, help="the folder of Fashion-MNIST")
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--rows", type=int, help="learn from so many only")
    chosen = options.parse_args()
    gathered()
    task = fashion_mnist.task(chosen.data, larger=LARGER)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    torch.manual_seed(0)
    model = replicated(task.model(), chosen.method)
    steps = chosen.epochs * task.steps(dist.get_world_size())
    sent = connect(model, chosen.method, steps)
    optimizer = optimizer_for(chosen.optimizer, model.parameters(), task.rate)
    rates = scheduled(optimizer, steps)
    made = 0
    for epoch in range(1, chosen.epochs + 1):
        model.train()
        for rows in batches(task, 0, epoch):
            loss = step(task, model, optimizer, rows)
            rates.step()
            made += 1
        score = judged(task, model.module)
        if dist.get_rank() == 0:
            print(
                f"{chosen.optimizer}, {chosen.method}, epoch {epoch}: loss {loss:.4f}, "
                f"{task.metric} {score:.2f}, {sent(made) / 1e6:,.2f} MB sent",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
