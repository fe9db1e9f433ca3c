"""GradientTracking: every rank tracks the mean gradient of all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base import Method

if TYPE_CHECKING:
    from ...aggregate.flat_model import Model
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Begun, Step

TRACKER, GRADIENT = "tracker", "gradient"


@dataclass(frozen=True)
class GradientTracking(Method):
    """Gradient tracking (DIGing).

        y_i <- sum_j W_ij y_j + g_i(x_i) - g_i(old x_i)       starts as g_i
        x_i <- sum_j W_ij x_j - lr y_i

    The mean of y is always the mean of the gradients, so all ranks converge to the optimum of the
    mean loss, however different their data are. Messages are twice as large as those of D-PSGD;
    both vectors are known before the gradient, so `begin` overlaps them with it.

    With `adapt_then_combine` the matrix acts on the new gradients as well,

        y_i <- sum_j W_ij (y_j + g_j(x_j) - g_j(old x_j)),   x_i <- sum_j W_ij (x_j - lr y_j)

    which allows a larger learning rate, in two exchanges one after the other.

    State: `tracker`, y, and `gradient`, the last g. A change of topology keeps them. A change of
    the world size drops them, since ranks get other data: y starts as g again.

    Reference: Nedic, Olshevsky, Shi: Achieving Geometric Convergence for Distributed
    Optimization over Time-Varying Graphs, SIAM Journal on Optimization, 2017.

    Args:
        topology: Doubly stochastic, of any period.
        adapt_then_combine: Whether to mix after the gradient.
    """

    name: ClassVar[str] = "gradient_tracking"
    number: ClassVar[int] = 7
    kept_entries: ClassVar[tuple[str, ...]] = (TRACKER, GRADIENT)

    adapt_then_combine: bool = False

    def _begin(self, call: Step, model: Model, state: State) -> Begun | None:
        if self.adapt_then_combine:
            return None
        return call.begin_mix(_joined(model.values, state))

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        if self.adapt_then_combine:
            y = (
                call.mix(_tracked(state[TRACKER], g, state))
                if TRACKER in state
                else g.copy()
            )
            return call.mix(call.descend(x, y)), {**state, TRACKER: y, GRADIENT: g.copy()}
        mixed = call.finish_mix(_joined(x, state))
        y = _tracked(mixed[x.size :], g, state) if TRACKER in state else g.copy()
        new = {**state, TRACKER: y, GRADIENT: g.copy()}
        return call.descend(mixed[: x.size], y), new


def _joined(x: Values, state: State) -> Values:
    """Return x and y as one vector, for one message per neighbour."""
    return np.concatenate([x, state[TRACKER]]) if TRACKER in state else x


def _tracked(y: Values, g: Values, state: State) -> Values:
    """Return y plus the change of the gradient."""
    tracked: Values = y + (g - state[GRADIENT])
    return tracked
