"""Delayed Nesterov: the outer optimizer of a server whose workers come one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregate.flat_model import flatten
from ..validation import check_integer
from .checks import check_fraction, check_positive
from .state import MOMENTUM, SHARED

if TYPE_CHECKING:
    from .state import State

BUFFER, ARRIVALS = "buffer", "arrivals"


@dataclass(frozen=True)
class DelayedNesterov:
    """SGD with momentum that is updated once in `period` arrivals.

    A worker sends D, its model at the start of its round minus that at the end. The shared model
    takes each D at once; momentum, which a D of an old model would mislead, takes their mean:

        buffer <- buffer + D
        shared <- shared - outer_lr (D / period + c outer_momentum b)       most arrivals
        b <- outer_momentum b + buffer / period, buffer <- 0                every period-th
        shared <- shared - outer_lr (D / period + (1 - c period + c) outer_momentum b)

    c is `activation`. With 0, a period of arrivals moves the model as one step of DiLoCo with their
    mean.

    State: `shared`, `momentum`, `buffer` and `arrivals`; `np.savez(file, **state)` writes it.

    Reference: Liu et al.: Asynchronous Local-SGD Training for Language Modeling, 2024.

    Args:
        period: Arrivals per update of the momentum, at least the number of workers.
        outer_lr: Outer learning rate.
        outer_momentum: Outer momentum, from 0 to below 1.
        activation: Part of the momentum in each other arrival, from 0 to 1 / period.
    """

    period: int
    outer_lr: float = 0.7
    outer_momentum: float = 0.9
    activation: float = 0.0

    def __post_init__(self) -> None:
        check_integer(self, "period", minimum=1)
        check_positive(self, "outer_lr")
        check_fraction(self, "outer_momentum")
        check_fraction(self, "activation", below_one=False)
        if self.activation * self.period > 1:
            raise ValueError(
                f"DelayedNesterov: activation must be at most 1 / period, {1 / self.period:g}, got "
                f"{self.activation}; 0 applies momentum once per period"
            )

    def init(self, x: Any) -> State:
        """Return the state of a server before the first arrival."""
        shared = np.array(flatten("init", x).values)
        return {
            SHARED: shared,
            MOMENTUM: np.zeros_like(shared),
            BUFFER: np.zeros_like(shared),
            ARRIVALS: np.array(0, np.int64),
        }

    def push(self, state: State, change: Any) -> State:
        """Return the state after the change of one worker; nothing is modified.

        Args:
            state: State from `init` or from the last push.
            change: D of a worker, as a model or as a flat array.

        Raises:
            ValueError: If it has another size, or a value that is NaN or infinite. The server can
                drop it and continue.
        """
        d = flatten("push", change).values
        shared, momentum = state[SHARED], state[MOMENTUM]
        if d.shape != shared.shape or not np.isfinite(np.vdot(d, d)):
            raise ValueError(
                f"push: change must have {shared.size} finite values, got {d.size}"
                + (", some of them NaN or infinite" if d.shape == shared.shape else "")
            )
        scalar = shared.dtype.type
        buffer, arrivals = state[BUFFER] + d, state[ARRIVALS] + 1
        weight = self.activation
        if arrivals % self.period == 0:
            momentum = scalar(self.outer_momentum) * momentum + buffer / scalar(self.period)
            buffer = np.zeros_like(buffer)
            weight = 1 - self.activation * (self.period - 1)
        update = d / scalar(self.period)
        if weight:
            update = update + scalar(weight * self.outer_momentum) * momentum
        new = shared - scalar(self.outer_lr) * update
        return {SHARED: new, MOMENTUM: momentum, BUFFER: buffer, ARRIVALS: arrivals}
