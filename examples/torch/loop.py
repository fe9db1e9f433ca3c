"""Training loop of the examples: DDP, one optimizer, a decaying learning rate."""

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

LAST_RATE = 0.05  # fraction of the first learning rate, at the last step
TEST_BATCH = 100


@dataclass(frozen=True)
class Task:
    """A model and its data.

    Attributes:
        model: Creates the model with torch's current seed.
        rows: Number of training rows.
        tests: Number of test rows.
        loss: Returns the mean loss over some rows.
        evaluate: Returns numerator and denominator of the metric over some test rows.
        score: Converts their ratio to the metric.
        metric: Name of the metric.
        learning_rate: Learning rate, for all methods.
        batch_size: Rows per rank and step.
        epochs: Default number of epochs.
        sparse: Whether gradients are sparse, which torch's hooks do not support.
    """

    model: Callable[[], nn.Module]
    rows: int
    tests: int
    loss: Callable[[Any, Tensor], Tensor]
    evaluate: Callable[[Any, Tensor], tuple[float, float]]
    score: Callable[[float], float]
    metric: str
    learning_rate: float
    batch_size: int
    epochs: int
    sparse: bool = False

    def steps(self, ranks: int) -> int:
        """Return the number of steps per epoch."""
        return self.rows // (self.batch_size * ranks)


class Point(NamedTuple):
    """State of training after an epoch."""

    epoch: int
    steps: int
    loss: float  # the mean over the epoch, on this rank
    score: float
    sent: float  # bytes by this rank since the start
    seconds: float  # in steps since the start


def train(task: Task, method: str, epochs: int, seed: int) -> Iterator[Point]:
    """Train on the ranks of torch's default group, and test after each epoch."""
    ranks, done, seconds = dist.get_world_size(), 0, 0.0
    total = epochs * task.steps(ranks)
    torch.manual_seed(seed)
    model = replicated(task.model(), method)
    sent = connect(model, method, total)
    optimizer = optimizer_for(task, model, method)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE, total)
    for epoch in range(1, epochs + 1):
        model.train()
        losses, start = [], time.perf_counter()
        for rows in batches(task, seed, epoch):
            optimizer.zero_grad()
            loss = task.loss(model, rows)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        done += len(losses)
        seconds += time.perf_counter() - start
        score, loss = test_score(task, model.module), sum(losses) / len(losses)
        yield Point(epoch, done, loss, score, sent(done), seconds)


def optimizer_for(task: Task, model: nn.Module, method: str) -> torch.optim.Optimizer:
    """Return SGD with momentum (DGC includes its own), or Adagrad for sparse tables."""
    if task.sparse:
        return torch.optim.Adagrad(model.parameters(), lr=task.learning_rate)
    momentum = 0.0 if method == "dgc" else MOMENTUM
    return torch.optim.SGD(model.parameters(), lr=task.learning_rate, momentum=momentum)


def batches(task: Task, seed: int, epoch: int) -> Iterator[Tensor]:
    """Yield this rank's rows of each step; all ranks use the same permutation."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(1000 * seed + epoch)
    order = torch.randperm(task.rows, generator=draw)
    for step in range(task.steps(ranks)):
        first = (step * ranks + rank) * task.batch_size
        yield order[first : first + task.batch_size]


def test_score(task: Task, model: nn.Module) -> float:
    """Return the metric on the test rows, which are split over the ranks."""
    model.eval()
    own = torch.arange(dist.get_rank(), task.tests, dist.get_world_size())
    sums = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for rows in own.split(TEST_BATCH):
            sums += torch.tensor(task.evaluate(model, rows), dtype=torch.float64)
    dist.all_reduce(sums)
    return task.score(float(sums[0] / sums[1]))


def init_group() -> None:
    """Initialize the process group; without torchrun there is one rank."""
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    torch.set_num_threads(1)  # the other cores are for other ranks
    dist.init_process_group("gloo")


def main(make: Callable[[Path | None], Task], about: str) -> None:
    """Run an example; rank 0 prints."""
    options = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--method", choices=METHODS, default="topk")
    options.add_argument("--data", type=Path, help="Folder or file of the real data.")
    options.add_argument("--epochs", type=int)
    options.add_argument("--rows", type=int, help="Number of training rows.")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    task = make(chosen.data)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    if task.sparse and chosen.method in ("fp16", "torch-powersgd"):
        options.error(f"{chosen.method} does not support sparse gradients")
    init_group()
    for point in train(task, chosen.method, chosen.epochs or task.epochs, chosen.seed):
        if dist.get_rank() == 0:
            print(
                f"{chosen.method}, epoch {point.epoch}: loss {point.loss:.4f}, "
                f"{task.metric} {point.score:.2f}, {point.sent / 1e6:,.2f} MB sent, "
                f"{point.seconds:.1f} s",
                flush=True,
            )
    dist.destroy_process_group()
