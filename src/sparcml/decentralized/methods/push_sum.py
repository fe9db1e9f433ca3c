"""PushSum: averages on directed and time-varying graphs, with a weight per rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base import Method
from ..requirements import require_column_stochastic

if TYPE_CHECKING:
    from ...communicator.communicator import Communicator
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

WEIGHT = "weight"


@dataclass(frozen=True)
class PushSum(Method):
    """Stochastic gradient push.

        u_i <- sum_j A_ij (u_j - lr g_j(z_j))
        w_i <- sum_j A_ij w_j                                 starts as 1
        z_i = u_i / w_i                                       the model x of this rank

    Only the columns of A must add up to 1: each rank divides what it holds among its receivers,
    and needs not know what others send. The sums of u and w over all ranks are kept, so the
    mean that is kept is that of w_i x_i; `mean` returns it. The models converge to it although
    A itself would converge to another weighted mean.

    State: `weight`, w_i. A change of topology keeps it. A change of the world size sets it to 1,
    and all ranks to the mean. Another method would take the plain mean of the models: call
    `consolidate` before a change of method.

    Reference: Assran, Loizou, Ballas, Rabbat: Stochastic Gradient Push for Distributed Deep
    Learning, ICML 2019.

    Args:
        topology: Column-stochastic, of any period.
    """

    name: ClassVar[str] = "push_sum"
    number: ClassVar[int] = 5
    kept_entries: ClassVar[tuple[str, ...]] = (WEIGHT,)

    def _check_topology(self) -> None:
        require_column_stochastic(self, self.topology)

    def _weight(self, state: State) -> float:
        return float(state.get(WEIGHT, np.array(1.0)))

    def _mean(self, comm: Communicator, values: Values, state: State | None) -> Values:
        if state is None:
            raise ValueError("mean: state must be that of this rank for PushSum, got None")
        mass = values * values.dtype.type(self._weight(state))
        return np.array(comm.allreduce(mass, op="mean"))  # the weights add up to comm.size

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        w = x.dtype.type(self._weight(state))
        message = np.empty(x.size + 1, x.dtype)
        np.multiply(x, w, out=message[:-1])
        message[:-1] -= call.update(g)
        message[-1] = w
        mixed = call.mix(message)
        return mixed[:-1] / mixed[-1], {**state, WEIGHT: np.array(mixed[-1])}
