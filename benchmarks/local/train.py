"""Training of several workers in one process, with a local method between them.

Each worker has its own model and optimizer and trains on its part of each batch of the accuracy
benchmark, so all forms and numbers of workers see the same rows in the same steps as the
synchronous run. Exchanges run on thread ranks and count the bytes of real messages.
"""

from __future__ import annotations

import copy
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accuracy.aggregators import clip
from accuracy.ranks import RankPool
from accuracy.train import AVERAGED, TEST_BATCH, arrays_of, batches, schedule

from sparcml import local

if TYPE_CHECKING:
    from accuracy.workloads import Workload
    from loop import Task
    from torch import Tensor, nn

    from sparcml.local.state import State

Row = dict[str, Any]


class Worker:
    """One worker: a model, an optimizer and the state of the method."""

    def __init__(self, work: Workload, model: nn.Module, method: local.Method) -> None:
        self.model, self.optimizer = model, inner_optimizer(work, model, method)
        self.state: State = method.init(arrays_of(model))


class WorkerPool(RankPool):
    """Thread ranks that exchange models."""

    def exchange(self, method: local.Method, workers: list[Worker], call: str) -> None:
        """Call `step` or `finish` of the method on all ranks, and set the models."""

        def body(rank: int) -> None:
            worker = workers[rank]
            own = {n: a.copy() for n, a in arrays_of(worker.model).items()}
            x, worker.state = getattr(method, call)(self._comms[rank], own, worker.state)
            for name, array in arrays_of(worker.model).items():
                np.copyto(array, x[name])

        list(self._threads.map(body, range(self.ranks)))


def inner_optimizer(
    work: Workload, model: nn.Module, method: local.Method
) -> torch.optim.Optimizer:
    """Return the workload's optimizer, or plain SGD for DeMo."""
    if isinstance(method, local.DeMo):
        return torch.optim.SGD(model.parameters(), 1.0)
    if work.optimizer == "adamw":
        return torch.optim.AdamW(
            model.parameters(), 1.0, work.betas, weight_decay=work.weight_decay
        )
    return torch.optim.SGD(
        model.parameters(), 1.0, work.momentum, nesterov=work.nesterov,
        weight_decay=work.weight_decay,
    )  # fmt: skip


def train(work: Workload, method: local.Method, workers: int, seed: int) -> Row:
    """Train once, and return the results; the score is None if it diverged."""
    torch.set_num_threads(1)
    task = work.task()
    torch.manual_seed(seed)
    first = task.model()
    group = [Worker(work, copy.deepcopy(first), method) for _ in range(workers)]
    losses: list[float] = []
    start, cpu = time.perf_counter(), time.process_time()
    with WorkerPool(workers) as pool:
        for number, rows in enumerate(batches(work, task.rows, seed), 1):
            lr = work.learning_rate * schedule(work, number - 1)
            losses.append(_inner_step(work, task, group, rows, lr))
            if not math.isfinite(losses[-1]):
                break
            pool.exchange(method, group, "step")
            if method.ends_round(number):
                _average_buffers(group)
        diverged = not math.isfinite(losses[-1])
        if not diverged:
            pool.exchange(method, group, "finish")
            _average_buffers(group)
        sent = pool.bytes_sent
    recent = losses[-AVERAGED:]
    return {
        "metric": task.metric,
        "score": None if diverged else score(task, group[0].model),
        "loss": None if diverged else sum(recent) / len(recent),
        "steps": len(losses),
        "values": sum(p.numel() for p in first.parameters()),
        "sent": sent,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


def _inner_step(
    work: Workload, task: Task, group: list[Worker], rows: Tensor, lr: float
) -> float:
    total = 0.0
    for worker, part in zip(group, rows.chunk(len(group)), strict=True):
        worker.optimizer.zero_grad()
        loss = task.loss(worker.model, part)
        loss.backward()
        total += float(loss.detach()) / len(group)
        if work.clip is not None:
            clip({n: p.grad.numpy() for n, p in worker.model.named_parameters()}, work.clip)
        for settings in worker.optimizer.param_groups:
            settings["lr"] = lr
        worker.optimizer.step()
    return total


def _average_buffers(group: list[Worker]) -> None:
    """Replace floating-point buffers by their means."""
    with torch.no_grad():
        for same in zip(*(w.model.buffers() for w in group), strict=True):
            if same[0].is_floating_point():
                mean = torch.stack(same).mean(0)
                for buffer in same:
                    buffer.copy_(mean)


def score(task: Task, model: nn.Module) -> float:
    """Return the metric on all test rows."""
    model.eval()
    over, under = 0.0, 0.0
    with torch.no_grad():
        for rows in torch.arange(task.tests).split(TEST_BATCH):
            top, bottom = task.evaluate(model, rows)
            over, under = over + top, under + bottom
    result: float = task.score(over / under)
    return result
