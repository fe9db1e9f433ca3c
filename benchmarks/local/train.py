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

import sparcml
from sparcml import local

if TYPE_CHECKING:
    from accuracy.aggregators import Arrays
    from accuracy.workloads import Workload
    from loop import Task
    from torch import Tensor, nn

    from sparcml.local.state import State

Row = dict[str, Any]

START = sparcml.Compressed(quantize=sparcml.QSGD(bits=8))  # of the gradients of a start


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


def train(
    work: Workload, method: local.Method, workers: int, seed: int, synchronous: int = 0
) -> Row:
    """Train once, and return the results; the score is None if it diverged.

    Args:
        work: The network and its settings.
        method: The local method.
        workers: Number of workers.
        seed: Seed of weights and batches.
        synchronous: Number of first steps, in which gradients are averaged.
    """
    torch.set_num_threads(1)
    task = work.task()
    torch.manual_seed(seed)
    first = task.model()
    group = [Worker(work, copy.deepcopy(first), method) for _ in range(workers)]
    states = [START.init({n: a.shape for n, a in arrays_of(first).items()})] * workers
    losses: list[float] = []
    start, cpu = time.perf_counter(), time.process_time()
    with WorkerPool(workers) as pool:
        for number, rows in enumerate(batches(work, task.rows, seed), 1):
            lr = work.learning_rate * schedule(work, number - 1)
            losses.append(_gradients(work, task, group, rows))
            if not math.isfinite(losses[-1]):
                break
            if number <= synchronous:
                states = _average_gradients(pool, group, states)
            _inner_steps(group, lr)
            if number < synchronous:
                continue
            if number == synchronous:
                for worker in group:
                    worker.state = method.init(arrays_of(worker.model))
            else:
                pool.exchange(method, group, "step")
            if number == synchronous or method.ends_round(number - synchronous):
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


def _gradients(work: Workload, task: Task, group: list[Worker], rows: Tensor) -> float:
    """Compute the gradient of each worker on its part of a batch; return the mean loss."""
    total = 0.0
    for worker, part in zip(group, rows.chunk(len(group)), strict=True):
        worker.optimizer.zero_grad()
        loss = task.loss(worker.model, part)
        loss.backward()
        total += float(loss.detach()) / len(group)
        if work.clip is not None:
            clip(_gradient(worker), work.clip)
    return total


def _gradient(worker: Worker) -> Arrays:
    return {n: p.grad.numpy() for n, p in worker.model.named_parameters()}


def _average_gradients(
    pool: WorkerPool, group: list[Worker], states: list[Any]
) -> list[Any]:
    """Replace the gradients by their mean over workers."""
    mean, states = pool.aggregate(START, [_gradient(worker) for worker in group], states)
    for worker in group:
        for name, p in worker.model.named_parameters():
            p.grad = torch.from_numpy(np.array(mean[name]))
    return states


def _inner_steps(group: list[Worker], lr: float) -> None:
    for worker in group:
        for settings in worker.optimizer.param_groups:
            settings["lr"] = lr
        worker.optimizer.step()


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
