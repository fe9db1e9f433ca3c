"""Training of one model on the gradients of many ranks.

There is one model and one optimizer, since all ranks of DDP have equal ones. In each step,
the gradient of each rank is computed in turn on its part of the batch, the gradients are
aggregated, and the optimizer makes a step with the result. The batch of all ranks is fixed,
so that any number of ranks costs about as much as one.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from sparcml import Method

from .aggregators import Aggregated, clip
from .ranks import RankPool
from .roster import DENSE, ROSTER, Setting, build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loop import Task
    from torch import Tensor, nn

    from .aggregators import Aggregator, Arrays
    from .workloads import Workload

POINTS = 8  # of the validation curve
EARLY = 300  # a further point at this step
AVERAGED = 50  # steps per training loss
EVERY = 5  # the curve uses one test row of five, the final score all
TEST_BATCH = 250

Row = dict[str, Any]


def train(work: Workload, method: str, ranks: int, learning_rate: float, seed: int) -> Row:
    """Train once.

    Args:
        work: The network and its settings.
        method: Name of a method of the roster.
        ranks: World size.
        learning_rate: Maximum learning rate.
        seed: Seed of the weights, the batches and the method.

    Returns:
        The results of the run; the score is None if it diverged.
    """
    torch.set_num_threads(1)
    task = work.task()
    torch.manual_seed(seed)
    model = task.model()
    with ExitStack() as stack:
        aggregator = made = build(method, Setting(work, ranks, seed, learning_rate))
        if isinstance(made, Method):
            pool = stack.enter_context(RankPool(ranks))
            leave = work.recurrent if ROSTER[method].leaves_recurrent else ""
            aggregator = Aggregated(pool, made, arrays_of(model), leave)
        optimizer = optimizer_for(work, model, learning_rate, method)
        return TrainingRun(work, task, model, optimizer, aggregator, seed).run()


def optimizer_for(
    work: Workload, model: nn.Module, learning_rate: float, method: str = DENSE
) -> torch.optim.Optimizer:
    """Return the workload's optimizer; SGD without momentum if the method has its own."""
    if work.optimizer == "adamw":
        return torch.optim.AdamW(
            model.parameters(), learning_rate, work.betas, weight_decay=work.weight_decay
        )
    momentum = 0.0 if ROSTER[method].includes_momentum else work.momentum
    return torch.optim.SGD(
        model.parameters(),
        learning_rate,
        momentum,
        weight_decay=work.weight_decay,
        nesterov=work.nesterov and momentum > 0,
    )


def schedule(work: Workload, step: int) -> float:
    """Return the fraction of the maximum learning rate in a step, the first being 0."""
    warm = round(work.warm_up * work.steps)
    if step < warm:
        return (step + 1) / (warm + 1)
    return (1 + math.cos(math.pi * (step - warm) / (work.steps - warm))) / 2


def batches(work: Workload, rows: int, seed: int) -> Iterator[Tensor]:
    """Yield the rows of each step, of all ranks; each epoch has its own permutation."""
    epoch, made, each = 0, 0, rows // work.batch
    while made < work.steps:
        epoch += 1
        draw = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(rows, generator=draw)
        for step in range(min(each, work.steps - made)):
            yield order[step * work.batch : (step + 1) * work.batch]
        made += each


def arrays_of(model: nn.Module) -> Arrays:
    """Return the parameters as arrays that share their memory."""
    return {n: p.detach().numpy() for n, p in model.named_parameters()}


class TrainingRun:
    """One training run.

    Args:
        work: Settings.
        task: The network and its data.
        model: The model, with its initial weights.
        optimizer: The optimizer.
        aggregator: Combines the gradients of ranks.
        seed: Seed of the batches.
    """

    def __init__(
        self,
        work: Workload,
        task: Task,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        aggregator: Aggregator,
        seed: int,
    ) -> None:
        self._work, self._task, self._seed = work, task, seed
        self.model, self._optimizer, self._aggregator = model, optimizer, aggregator
        self._parameters = dict(model.named_parameters())
        self._learning_rate = optimizer.param_groups[0]["lr"]
        self._made = 0

    def run(self) -> Row:
        """Make all steps, and return the results."""
        steps = self._work.steps
        marks = {round(steps * (i + 1) / POINTS) for i in range(POINTS)} | {EARLY}
        losses: list[float] = []
        points: list[tuple[int, float, float]] = []
        start, cpu, diverged = time.perf_counter(), time.process_time(), False
        for rows in batches(self._work, self._task.rows, self._seed):
            losses.append(self.step(rows))
            diverged = not math.isfinite(losses[-1])
            if diverged:
                break
            if (made := len(losses)) in marks:
                recent = losses[-AVERAGED:]
                score = self.score(every=1 if made == steps else EVERY)
                points.append((made, sum(recent) / len(recent), score))
        return {
            "metric": self._task.metric,
            "score": None if diverged else points[-1][2],
            "steps": len(losses),
            "marks": [made for made, _, _ in points],
            "losses": [round(loss, 5) for _, loss, _ in points],
            "scores": [round(score, 5) for _, _, score in points],
            "values": sum(p.numel() for p in self._parameters.values()),
            "sent": self._aggregator.bytes_sent,
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
        }

    def step(self, rows: Tensor) -> float:
        """Make one step, and return the mean loss before it; none if that is not finite."""
        parts, gradients, total = self._aggregator.parts, [], 0.0
        for part in rows.chunk(parts):
            self._optimizer.zero_grad()
            loss = self._task.loss(self.model, part)
            loss.backward()
            total += float(loss.detach()) / parts
            gradient = {n: p.grad.numpy() for n, p in self._parameters.items()}
            clip(gradient, self._work.clip)
            gradients.append(gradient)
        if not math.isfinite(total):
            return total
        lr = self._learning_rate * schedule(self._work, self._made)
        result = self._aggregator.aggregate(gradients, lr)
        if self._aggregator.returns_update:
            self._subtract(result, 1 - lr * self._work.weight_decay)
        else:
            for name, p in self._parameters.items():
                p.grad = torch.from_numpy(result[name])
            self._optimizer.param_groups[0]["lr"] = lr
            self._optimizer.step()
        self._made += 1
        return total

    def _subtract(self, update: Arrays, decay: float) -> None:
        """Apply an update in place of the optimizer."""
        with torch.no_grad():
            for name, p in self._parameters.items():
                p.mul_(decay).sub_(torch.from_numpy(update[name]))

    def score(self, every: int = 1) -> float:
        """Return the metric on one of `every` test rows."""
        self.model.eval()
        over, under = 0.0, 0.0
        with torch.no_grad():
            for rows in torch.arange(0, self._task.tests, every).split(TEST_BATCH):
                top, bottom = self._task.evaluate(self.model, rows)
                over, under = over + top, under + bottom
        self.model.train()
        return self._task.score(over / under)
