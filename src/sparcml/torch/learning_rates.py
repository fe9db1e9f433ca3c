"""Learning rates of an optimizer, for residuals, and what a rise of them means for momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..aggregate.state import RATE, key
from .step_hooks import innermost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from .reducer import GradientReducer

RISE = 2.0  # a linear warm-up rises by less from its second step on


class LearningRates:
    """Reads the current learning rates by name of the parameter.

    While a learning rate falls, the residual is multiplied by old / new, so that it moves the
    weights as it would have done in its own step. What is sent of it is then part of SGD's
    momentum. If the rate jumps up again, as in a warm restart, that momentum would be applied
    at the high rate: it is multiplied by old / new, as the residual is.

    Args:
        optimizer: The optimizer.
        reducer: Has the learning rates of the residuals in its state.
        names: Names of all parameters.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        reducer: GradientReducer,
        names: Mapping[Tensor, str],
    ) -> None:
        self._optimizer, self._reducer, self._names = optimizer, reducer, names
        self._scaled: dict[str, tuple[float, float]] = {}  # rises that were handled

    def __call__(self) -> dict[str, float]:
        """Return the learning rates; called before the gradients of a step are averaged."""
        rates = {}
        for group in self._optimizer.param_groups:
            lr = float(group["lr"])
            for p in group["params"]:
                if (name := self._names.get(p)) is not None:
                    rates[name] = lr
                    self._follow(p, name, lr)
        return rates

    def _follow(self, p: Tensor, name: str, lr: float) -> None:
        before = self._reducer.state.get(key(RATE, name))
        if before is None or lr <= RISE * (old := float(before)):
            return
        if self._scaled.get(name) == (old, lr):  # the gradients of a step come in groups
            return
        self._scaled[name] = old, lr
        momentum = innermost(self._optimizer).state.get(p, {}).get("momentum_buffer")
        if momentum is not None:
            with torch.no_grad():
                momentum.mul_(old / lr)
