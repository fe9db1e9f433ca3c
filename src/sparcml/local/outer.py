"""The outer optimizer: SGD with momentum on the change of the model over a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..stream.arrays import Values


@dataclass(frozen=True)
class Outer:
    """SGD on the shared model, with D (start minus end of a round) as its gradient.

        b <- momentum b + D
        shared <- shared - lr (D + momentum b)      Nesterov
        shared <- shared - lr b                     heavy ball

    It is `torch.optim.SGD(lr, momentum, nesterov)`. With Nesterov's form, a constant D moves the
    model by up to lr / (1 - momentum) D per round.

    Attributes:
        lr: Outer learning rate.
        momentum: Outer momentum.
        nesterov: Whether the momentum is Nesterov's.
    """

    lr: float
    momentum: float = 0.0
    nesterov: bool = True

    @property
    def is_average(self) -> bool:
        """Whether a step gives the mean of the models."""
        return self.lr == 1 and self.momentum == 0

    def step(
        self, shared: Values, momentum: Values | None, change: Values
    ) -> tuple[Values, Values | None]:
        """Return the new shared model and the new momentum; nothing is modified."""
        scalar = shared.dtype.type
        update = change
        if self.momentum:
            old = 0 if momentum is None else momentum * scalar(self.momentum)
            momentum = old + change
            update = (
                change + momentum * scalar(self.momentum) if self.nesterov else momentum
            )
        return shared - update * scalar(self.lr), momentum
