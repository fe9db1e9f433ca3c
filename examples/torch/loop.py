"""The training loop that these examples share: DDP, one optimizer, a falling rate."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from hooks import METHODS, MOMENTUM, connect, replicated
from torch import distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

LAST_RATE = 0.05  # of the first one, at the last step
JUDGED = 100  # rows at a time


@dataclass(frozen=True)
class Task:
    """A model and its data.

    Attributes:
        model: Makes it, from torch's seed.
        rows: How many there are to learn from.
        tests: And how many to be judged by.
        loss: The mean over some rows.
        judge: Two sums over some rows of the test, whose ratio
        score: becomes a number for people.
        metric: What it is called.
        rate: The learning rate, for all methods.
        batch: Rows of a rank in a step.
        epochs: Over all rows.
        sparse: Whether gradients are, which torch's hooks do not take.
    """

    model: Callable[[], nn.Module]
    rows: int
    tests: int
    loss: Callable[[Any, Tensor], Tensor]
    judge: Callable[[Any, Tensor], tuple[float, float]]
    score: Callable[[float], float]
    metric: str
    rate: float
    batch: int
    epochs: int
    sparse: bool = False

    def steps(self, ranks: int) -> int:
        """Those of an epoch."""
        return self.rows // (self.batch * ranks)


class Point(NamedTuple):
    """Where training is after an epoch."""

    epoch: int
    steps: int
    loss: float  # the mean over the epoch, on this rank
    score: float
    sent: float  # bytes by this rank, from the start
    seconds: float  # in steps, from the start


def train(task: Task, method: str, epochs: int, seed: int) -> Iterator[Point]:
    """Train on the ranks of torch's default group, and be judged after each epoch."""
    ranks, made, seconds = dist.get_world_size(), 0, 0.0
    total = epochs * task.steps(ranks)
    torch.manual_seed(seed)
    model = replicated(task.model(), method)
    sent = connect(model, method, total)
    optimizer = optimizer_for(task, model, method)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE, total)
    for epoch in range(1, epochs + 1):
        model.train()
        losses, start = [], time.perf_counter()
        for rows in batches(task, seed, epoch):
            optimizer.zero_grad()
            loss = task.loss(model, rows)
            loss.backward()
            optimizer.step()
            falling.step()
            losses.append(loss.item())
        made += len(losses)
        seconds += time.perf_counter() - start
        score, loss = judged(task, model.module), sum(losses) / len(losses)
        yield Point(epoch, made, loss, score, sent(made), seconds)


def optimizer_for(task: Task, model: nn.Module, method: str) -> torch.optim.Optimizer:
    """SGD with momentum, which Deep Gradient Compression has inside; Adagrad for tables."""
    if task.sparse:
        return torch.optim.Adagrad(model.parameters(), lr=task.rate)
    momentum = 0.0 if method == "dgc" else MOMENTUM
    return torch.optim.SGD(model.parameters(), lr=task.rate, momentum=momentum)


def batches(task: Task, seed: int, epoch: int) -> Iterator[Tensor]:
    """This rank's rows of each step; all ranks draw the same order."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(1000 * seed + epoch)
    order = torch.randperm(task.rows, generator=draw)
    for step in range(task.steps(ranks)):
        first = (step * ranks + rank) * task.batch
        yield order[first : first + task.batch]


def judged(task: Task, model: nn.Module) -> float:
    """The score on the test rows, of which each rank takes its share."""
    model.eval()
    mine = torch.arange(dist.get_rank(), task.tests, dist.get_world_size())
    sums = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for rows in mine.split(JUDGED):
            sums += torch.tensor(task.judge(model, rows), dtype=torch.float64)
    dist.all_reduce(sums)
    return task.score(float(sums[0] / sums[1]))


def gathered() -> None:
    """Bring the ranks together; a program started without torchrun is a world of one."""
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    torch.set_num_threads(1)  # the ranks are here for the other cores
    dist.init_process_group("gloo")


def main(make: Callable[[Path | None], Task], about: str) -> None:
    """What each example does on each rank; the first one prints."""
    options = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--method", choices=METHODS, default="topk")
    options.add_argument("--data", type=Path, help="where the real data are")
    options.add_argument("--epochs", type=int)
    options.add_argument("--rows", type=int, help="learn from so many only")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    task = make(chosen.data)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    if task.sparse and chosen.method in ("fp16", "torch-powersgd"):
        options.error(f"{chosen.method} does not take sparse gradients")
    gathered()
    for point in train(task, chosen.method, chosen.epochs or task.epochs, chosen.seed):
        if dist.get_rank() == 0:
            print(
                f"{chosen.method}, epoch {point.epoch}: loss {point.loss:.4f}, "
                f"{task.metric} {point.score:.2f}, {point.sent / 1e6:,.2f} MB sent, "
                f"{point.seconds:.1f} s",
                flush=True,
            )
    dist.destroy_process_group()
