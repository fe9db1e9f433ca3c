"""Time of a step with several methods in turn, and with communication off.

All ranks start each step together, and the slowest rank counts: no rank can start the next
step before. Methods alternate, so that noise affects all of them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from hooks import connect, replicated
from loop import batches, optimizer_for
from torch import distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loop import Task
    from torch import Tensor

# Steps: DDP rebuilds its buckets after the first, torch's PowerSGD starts after two.
WARM_UP = 3

RATE = 1e-3  # ranks diverge in steps without allreduce; weights must stay finite


class Steps:
    """A network and a method.

    Args:
        task: The network and its data.
        method: Name of a method of the examples.
        adamw: Whether the optimizer is AdamW, in place of that of the examples.

    Attributes:
        model: DDP model.
        optimizer: The optimizer.
        seconds: Times of the steps, appended by the caller.
    """

    def __init__(self, task: Task, method: str, *, adamw: bool = False) -> None:
        torch.manual_seed(0)
        self._task = task
        self.model = replicated(task.model(), method)
        self._sent = connect(self.model, method, 1000)
        self.optimizer = optimizer_for(task, self.model, method)
        if adamw:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), RATE)
        self._rows = self._endless()
        self._made = 0
        for _ in range(WARM_UP):
            self.step()
        self._sent_before = self._sent(self._made)
        self.seconds: list[float] = []

    def _endless(self) -> Iterator[Tensor]:
        epoch = 0
        while True:
            yield from batches(self._task, 0, epoch)
            epoch += 1

    def step(self) -> None:
        """Make one step as in training."""
        self.compute()
        self._made += 1

    def alone(self) -> None:
        """Make one step with communication off."""
        with self.model.no_sync():
            self.compute()

    def compute(self) -> None:
        """Run forward, backward and update."""
        self.optimizer.zero_grad()
        self._task.loss(self.model, next(self._rows)).backward()
        self.optimizer.step()

    def row(self) -> dict[str, Any]:
        """Return the row to save."""
        sent = self._sent(self._made) - self._sent_before
        return {
            "steps": [round(s, 6) for s in self.seconds],
            "sent": sent / (self._made - WARM_UP),
            "values": sum(p.numel() for p in self.model.parameters()),
        }


def measure(
    task: Task, methods: Sequence[str], count: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """Return a row per method, over `count` rounds or those that fit into the time."""
    end = time.monotonic() + seconds
    slow = replace(task, learning_rate=RATE)
    running = {method: Steps(slow, method) for method in methods}
    alone: list[float] = []
    while len(alone) < count and _agreed(time.monotonic() < end):
        for steps in running.values():
            steps.seconds.append(timed(steps.step))
        alone.append(timed(running[methods[0]].alone))
    compute = {"compute": [round(s, 6) for s in alone]}
    return {method: steps.row() | compute for method, steps in running.items()}


def timed(work: Callable[[], None]) -> float:
    """Return the seconds of the slowest rank; all start together."""
    dist.barrier()
    start = time.perf_counter()
    work()
    spent = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
    dist.all_reduce(spent, dist.ReduceOp.MAX)
    return float(spent)


def _agreed(yes: bool) -> bool:
    """Return rank 0's value on all ranks."""
    decision = torch.tensor([float(yes)])
    dist.broadcast(decision, 0)
    return bool(decision)
