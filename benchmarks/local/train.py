"""Training of several workers in one process, with a local method between them.

Each worker has its own model and optimizer and trains on its part of each batch of the accuracy
benchmark, so all forms and numbers of workers see the same rows in the same steps as the
synchronous run. Exchanges run on thread ranks and count the bytes of real messages.
"""

from __future__ import annotations

import copy
import itertools
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
from sparcml.costs import ring_nbytes
from sparcml.local.state import STEP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accuracy.aggregators import Arrays
    from accuracy.workloads import Workload
    from loop import Task
    from torch import Tensor, nn

    from sparcml.local.state import State

    from .forms import Form

Row = dict[str, Any]

START = sparcml.Compressed(quantize=sparcml.QSGD(bits=8))  # of the gradients of a start


class Worker:
    """One worker: a model, an optimizer and the state of the method."""

    def __init__(self, work: Workload, model: nn.Module, method: local.Method) -> None:
        self.model, self.optimizer = model, inner_optimizer(work, model, method)
        self.state: State = method.init(arrays_of(model))

    def checkpoint(self) -> Row:
        """Return what the end of a synchronous start leaves, the same on all workers."""
        found = self.optimizer.state_dict()["state"]
        return {"model": self.model.state_dict(), "optimizer": found}

    def load(self, checkpoint: Row) -> None:
        """Continue from the end of a synchronous start."""
        self.model.load_state_dict(checkpoint["model"])
        groups = self.optimizer.state_dict()["param_groups"]
        state = copy.deepcopy(checkpoint["optimizer"])
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})


class WorkerPool(RankPool):
    """Thread ranks that exchange models."""

    def exchange(self, method: local.Method, workers: list[Worker], call: str) -> None:
        """Call `step` or `finish` of the method on all ranks, and set the models."""
        if call == "step" and not method.exchanges(int(workers[0].state[STEP]) + 1):
            for worker in workers:  # nothing to copy
                worker.state = method.step(self._comms[0], None, worker.state)[1]
            return

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
            model.parameters(), 1.0, work.betas, weight_decay=work.weight_decay, fused=True
        )
    return torch.optim.SGD(
        model.parameters(), 1.0, work.momentum, nesterov=work.nesterov,
        weight_decay=work.weight_decay,
    )  # fmt: skip


def train(
    work: Workload,
    form: Form,
    every: int,
    workers: int,
    seed: int,
    synchronous: int = 0,
    saved: Path | None = None,
) -> Row:
    """Train once, and return the results; the score is None if it diverged.

    Args:
        work: The network and its settings.
        form: The local method and its settings.
        every: Inner steps per round.
        workers: Number of workers.
        seed: Seed of weights and batches.
        synchronous: Number of first steps, in which gradients are averaged.
        saved: File with the end of the synchronous start, written if there is none: runs that
            differ only in what follows need it once.
    """
    torch.set_num_threads(1)
    method, task = form.method(every), work.task()
    torch.manual_seed(seed)
    first = task.model()
    group = [Worker(work, copy.deepcopy(first), method) for _ in range(workers)]
    start, cpu = time.perf_counter(), time.process_time()
    with WorkerPool(workers) as pool:
        run = LocalRun(work, task, form, method, group, pool)
        made = run.start(synchronous, seed, saved)
        diverged = not run.rounds(made, seed)
        sent = run.sent + pool.bytes_sent
    recent = run.losses[-AVERAGED:]
    return {
        "metric": task.metric,
        "score": None if diverged else score(task, group[0].model),
        "loss": None if diverged else sum(recent) / len(recent),
        "steps": len(run.losses),
        "values": sum(p.numel() for p in first.parameters()),
        "sent": sent,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


class LocalRun:
    """One training run: a synchronous start, then rounds.

    Attributes:
        losses: Mean loss of the workers in each step.
        sent: Bytes that a rank has sent in a start that was read from a file, and for moments.
    """

    def __init__(
        self,
        work: Workload,
        task: Task,
        form: Form,
        method: local.Method,
        group: list[Worker],
        pool: WorkerPool,
    ) -> None:
        self._work, self._task, self._form, self._method = work, task, form, method
        self._group, self._pool = group, pool
        self.losses: list[float] = []
        self.sent = 0.0

    def start(self, steps: int, seed: int, saved: Path | None = None) -> int:
        """Make the synchronous steps, or read their result; return how many were made."""
        group = self._group
        if saved is not None and saved.exists():
            found = torch.load(saved, weights_only=False)
            for worker in group:
                worker.load(found)
            self.losses, self.sent = found["losses"], found["sent"]
        elif steps:
            shapes = {n: a.shape for n, a in arrays_of(group[0].model).items()}
            states = [START.init(shapes)] * len(group)
            for number, rows in enumerate(self._batches(0, steps, seed)):
                self.losses.append(_gradients(self._work, self._task, group, rows))
                if not math.isfinite(self.losses[-1]):
                    return number
                states = _average_gradients(self._pool, group, states)
                _inner_steps(group, self._learning_rate(number))
            _average_buffers(group)
            if saved is not None:
                about = {"losses": self.losses, "sent": self._pool.bytes_sent}
                torch.save({**group[0].checkpoint(), **about}, saved)
        for worker in group:
            worker.state = self._method.init(arrays_of(worker.model))
        return steps

    def rounds(self, made: int, seed: int) -> bool:
        """Make the remaining steps; return False if the training diverged."""
        group, method, form = self._group, self._method, self._form
        for number, rows in enumerate(self._batches(made, self._work.steps, seed), made):
            self.losses.append(_gradients(self._work, self._task, group, rows))
            if not math.isfinite(self.losses[-1]):
                return False
            _inner_steps(group, form.inner_lr * self._learning_rate(number))
            self._pool.exchange(method, group, "step")
            if method.ends_round(number + 1 - made):
                _average_buffers(group)
                self.sent += _average_moments(group, form.average)
        if not self.losses or not math.isfinite(self.losses[-1]):
            return False
        self._pool.exchange(method, group, "finish")
        _average_buffers(group)
        return True

    def _batches(self, first: int, last: int, seed: int) -> Iterator[Tensor]:
        return itertools.islice(batches(self._work, self._task.rows, seed), first, last)

    def _learning_rate(self, number: int) -> float:
        return self._work.learning_rate * schedule(self._work, number)


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


def _average_moments(group: list[Worker], names: tuple[str, ...]) -> float:
    """Replace entries of the optimizer's state by their means; return the bytes of a ring."""
    sent = 0.0
    for name in names:
        for same in zip(*(w.optimizer.state.values() for w in group), strict=True):
            mean = torch.stack([entry[name] for entry in same]).mean(0)
            for entry in same:
                entry[name].copy_(mean)
            sent += ring_nbytes(len(group), mean.nbytes)
    return sent


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
