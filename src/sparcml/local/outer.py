"""The outer optimizer: SGD with momentum on the change of the model over a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool

if TYPE_CHECKING:
    from ..stream.arrays import Values

BLOCK = 1 << 15  # values, so that all temporary arrays stay in the cache


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
        new = buffer_pool.empty(shared.size, shared.dtype)
        buffer = None if not self.momentum else buffer_pool.empty(shared.size, shared.dtype)
        for start in range(0, shared.size, BLOCK):
            part = slice(start, start + BLOCK)
            update = change[part]
            if buffer is not None:
                old = None if momentum is None else momentum[part]
                update = self._accelerated(old, update, buffer[part])
            np.subtract(shared[part], update * shared.dtype.type(self.lr), out=new[part])
        return new, momentum if buffer is None else buffer

    def _accelerated(self, old: Values | None, change: Values, out: Values) -> Values:
        """Write the new momentum to `out`, and return the update."""
        factor = change.dtype.type(self.momentum)
        np.add(0 if old is None else old * factor, change, out=out)
        return change + out * factor if self.nesterov else out


def mixed(mix: float, own: Values, shared: Values) -> Values:
    """Return mix own + (1 - mix) shared as a new vector."""
    if mix == 0:
        return buffer_pool.copy(shared)
    weight = own.dtype.type(mix)
    new = buffer_pool.empty(own.size, own.dtype)
    for start in range(0, own.size, BLOCK):
        part = slice(start, start + BLOCK)
        np.add(own[part] * weight, shared[part] * (1 - weight), out=new[part])
    return new
