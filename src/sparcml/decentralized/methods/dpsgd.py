"""DPSGD: average with the neighbours, and descend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...validation import check_real
from ..base import Method

if TYPE_CHECKING:
    from ...aggregate.flat_model import Model
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Begun, Step

MOMENTUM = "momentum"


@dataclass(frozen=True)
class DPSGD(Method):
    """Decentralized parallel SGD.

        x_i <- sum_j W_ij x_j - lr g_i(x_i)           combine, then adapt (default)
        x_i <- sum_j W_ij (x_j - lr g_j(x_j))         adapt, then combine

    By default x is sent before the gradient is known: pass the result of `begin` to `step`, and
    the exchange overlaps the gradient. The other order has to wait for the gradient and is a
    little more accurate if the ranks have different data. The mean of all models moves by the
    mean gradient: m <- m - lr mean(g). On the complete graph, adapt-then-combine is centralized
    SGD; combine-then-adapt is too in the first step from equal models, and close to it later.

    With momentum, m_i <- momentum m_i + g_i replaces the gradient. Each rank has its own, so
    with different data per rank the bias of the models grows to that of lr / (1 - momentum).

    State: `momentum`. A change of topology keeps it; a change of the world size averages it.

    Reference: Lian, Zhang, Zhang, Hsieh, Zhang, Liu: Can Decentralized Algorithms Outperform
    Centralized Algorithms?, NeurIPS 2017.

    Args:
        topology: Doubly stochastic, of any period.
        adapt_then_combine: Whether to apply the gradient before the exchange.
        momentum: Momentum of each rank, from 0 to below 1.
    """

    name: ClassVar[str] = "dpsgd"
    number: ClassVar[int] = 0
    kept_entries: ClassVar[tuple[str, ...]] = (MOMENTUM,)
    averaged_entries: ClassVar[tuple[str, ...]] = (MOMENTUM,)

    adapt_then_combine: bool = False
    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real(self, "momentum")
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"DPSGD: momentum must be from 0 to below 1, got {self.momentum}"
            )

    def _begin(self, call: Step, model: Model, state: State) -> Begun | None:
        del state
        return None if self.adapt_then_combine else call.begin_mix(model.values)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        new = dict(state)
        if self.momentum:
            old = state.get(MOMENTUM, np.zeros_like(g))
            new[MOMENTUM] = g = g + old * g.dtype.type(self.momentum)
        if self.adapt_then_combine:
            return call.mix(call.descend(x, g)), new
        return call.descend(call.finish_mix(x), g), new
