"""Large batches: a scaled learning rate, a warm-up, and optimizers made for them.

    torchrun --nproc-per-node 2 examples/torch/large_batch.py --optimizer lars --method topk1

Batch size and learning rate are 8 times those of fashion_mnist.py (linear scaling), after a warm-up
in the first tenth of the steps. The schedulers are torch's own; LARS, LAMB and SAM come from the
package pytorch-optimizer (pip install pytorch-optimizer). All of them receive the mean gradient
of sparcml's hook and need no change.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fashion_mnist
import torch
from hooks import METHODS, MOMENTUM, connect, replicated
from loop import batches, init_group, test_score
from torch import distributed as dist
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loop import Task
    from torch import Tensor, nn

LARGER = 8
OPTIMIZERS = ("sgd", "lars", "lamb", "sam")


def optimizer_for(name: str, parameters: Iterable[Tensor], rate: float) -> Any:
    """Return an optimizer; `rate` is the learning rate of SGD."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=MOMENTUM)
    import pytorch_optimizer

    if name == "lars":  # its steps are relative to the norm of a layer
        return pytorch_optimizer.LARS(
            parameters, lr=rate, momentum=MOMENTUM, trust_coefficient=0.02
        )
    if name == "lamb":
        return pytorch_optimizer.Lamb(parameters, lr=rate / 40)
    return pytorch_optimizer.SAM(
        parameters, torch.optim.SGD, rho=0.05, lr=rate, momentum=MOMENTUM
    )


def scheduled(optimizer: Any, steps: int) -> SequentialLR:
    """Return a linear warm-up over a tenth of the steps, then cosine decay to zero."""
    stepping = getattr(optimizer, "base_optimizer", optimizer)
    warm = max(1, steps // 10)
    up = LinearLR(stepping, 1 / LARGER, 1.0, warm)
    return SequentialLR(stepping, [up, CosineAnnealingLR(stepping, steps - warm)], [warm])


def step(task: Task, model: nn.Module, optimizer: Any, rows: Tensor) -> float:
    """Run one step and return its loss.

    SAM's first backward pass uses the rank's own gradient and is not averaged, so that a step
    sends as much as one of SGD.
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
    """Train; rank 0 prints."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    methods = [name for name in METHODS if name != "dgc"]  # it includes the momentum of SGD
    options.add_argument("--method", choices=methods, default="topk1")
    options.add_argument("--data", type=Path, help="Folder of Fashion-MNIST.")
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--rows", type=int, help="Number of training rows.")
    chosen = options.parse_args()
    init_group()
    task = fashion_mnist.task(chosen.data, larger=LARGER)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    torch.manual_seed(0)
    model = replicated(task.model(), chosen.method)
    steps = chosen.epochs * task.steps(dist.get_world_size())
    sent = connect(model, chosen.method, steps)
    optimizer = optimizer_for(chosen.optimizer, model.parameters(), task.learning_rate)
    schedule = scheduled(optimizer, steps)
    done = 0
    for epoch in range(1, chosen.epochs + 1):
        model.train()
        for rows in batches(task, 0, epoch):
            loss = step(task, model, optimizer, rows)
            schedule.step()
            done += 1
        score = test_score(task, model.module)
        if dist.get_rank() == 0:
            print(
                f"{chosen.optimizer}, {chosen.method}, epoch {epoch}: loss {loss:.4f}, "
                f"{task.metric} {score:.2f}, {sent(done) / 1e6:,.2f} MB sent",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
