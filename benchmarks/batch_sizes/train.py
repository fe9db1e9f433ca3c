"""Training with one recipe until a condition holds.

Four ranks share each batch, inside one process, with the aggregators of benchmarks/accuracy.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from accuracy.aggregators import Aggregated, Mean
from accuracy.ranks import RankPool

from .problem import batches, loss, network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accuracy.aggregators import Aggregator
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from .problem import Images
    from .recipes import Recipe

RANKS = 4
FIRST, SPACING = (
    32,
    1.05,
)  # first evaluation, and ratio of the steps of successive evaluations
CHANCE = math.log(10)  # loss of equal probabilities
RECENT = 50  # steps of the mean loss that a diverged run is recognized by
ALL = "parameters"  # gradients are one vector


class TrainingRun:
    """One run of a recipe.

    Args:
        recipe: Optimizer and compression.
        data: Training images.
        batch: Batch size of all ranks together.
        rate: Learning rate after the warm-up.
        warm_up: Number of steps in which the learning rate rises to it.
        seed: Seed of the weights and the batches.
        model: The network.
        aggregator: Combines the gradients of ranks.

    Attributes:
        steps: Number of steps so far.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Images,
        batch: int,
        rate: float,
        warm_up: int,
        seed: int,
        model: nn.Module,
        aggregator: Aggregator,
    ) -> None:
        self._model, self._data, self._aggregator = model, data, aggregator
        self._two_passes = recipe.two_passes
        self._optimizer = recipe.optimizer(model.parameters(), rate)
        self._parameters = list(model.parameters())
        self._batches = batches(len(data.labels), batch, seed)
        self._rate, self._warm_up = rate, warm_up
        self.steps = 0

    def until(self, reached: Callable[[], bool], limit: int) -> int | None:
        """Make steps until a condition holds.

        The condition is evaluated after 32 steps, and then after every 5 % more.

        Returns:
            The number of steps; None if the limit is reached or the run diverged: its loss is
            not finite, or not below that of equal probabilities.
        """
        due, recent = FIRST, CHANCE
        while self.steps < limit:
            value = self.step()
            recent += (value - recent) / RECENT
            stuck = self.steps > 2 * RECENT and recent > 0.95 * CHANCE
            if stuck or not math.isfinite(value):
                return None
            if self.steps >= due:
                due = max(self.steps + 1, round(self.steps * SPACING))
                if reached():
                    return self.steps
        return None

    def step(self) -> float:
        """Make one step, and return the loss before it; none if that is not finite."""
        gradients, total = [], 0.0
        parts = RANKS if self._two_passes else self._aggregator.parts
        for rows in next(self._batches).chunk(parts):
            value, gradient = self._gradient(rows)
            total += value / parts
            gradients.append(gradient)
        if not math.isfinite(total):
            return total
        if self._aggregator.parts < parts:
            gradients = [np.mean(gradients, axis=0)]
        rate = self._rate * min(1.0, (self.steps + 1) / (self._warm_up + 1))
        result = self._aggregator.aggregate([{ALL: g} for g in gradients], rate)[ALL]
        self._apply(torch.from_numpy(result).flatten(), rate)
        self.steps += 1
        return total

    def _apply(self, gradient: Tensor, rate: float) -> None:
        parts = gradient.split([p.numel() for p in self._parameters])
        for p, part in zip(self._parameters, parts, strict=True):
            p.grad = part.reshape(p.shape).clone()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if self._two_passes:
            self._optimizer.second_step()
        else:
            self._optimizer.step()

    def _gradient(self, rows: Tensor) -> tuple[float, NDArray[np.float32]]:
        """Return a rank's loss and gradient.

        The first pass of SAM moves the weights along the rank's own gradient, which is not
        sent; the gradient of the second pass is sent.
        """
        value = self._backward(rows)
        if self._two_passes and math.isfinite(value):
            self._optimizer.first_step()
            self._backward(rows)
            with torch.no_grad():
                for p in self._parameters:
                    p.copy_(self._optimizer.state[p]["old_p"])
        gradient = torch.cat([p.grad.flatten() for p in self._parameters])
        return value, gradient.numpy()[:, None]

    def _backward(self, rows: Tensor) -> float:
        self._optimizer.zero_grad()
        value = loss(self._model, self._data, rows)
        value.backward()
        return float(value.detach())


@contextmanager
def training(
    recipe: Recipe,
    data: Images,
    batch: int,
    rate: float,
    warm_up: int,
    seed: int,
    compressed: bool,
) -> Iterator[tuple[TrainingRun, nn.Module, Aggregator]]:
    """Yield a run, its network and its aggregator: the dense mean, or compression."""
    torch.set_num_threads(1)
    model = network(seed)
    settings = recipe, data, batch, rate, warm_up, seed, model
    if not compressed:
        mean = Mean(RANKS)
        yield TrainingRun(*settings, mean), model, mean
        return
    count = sum(p.numel() for p in model.parameters())
    with RankPool(RANKS) as pool:
        vector = {ALL: np.zeros((count, 1), np.float32)}
        aggregated = Aggregated(pool, recipe.method(seed), vector)
        yield TrainingRun(*settings, aggregated), model, aggregated
