"""Dense: the plain mean, for comparison and for what does not pay to compress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import Method
from .state import RESIDUAL, keys_of
from .uncompressed import mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from .gradients import Parameter, Shape
    from .state import State


@dataclass(frozen=True)
class Dense(Method):
    """The exact mean of the gradients, packed together.

    Gradients that are sparse already (streams, sparse tensors) stay sparse on the way. What
    an earlier method owes is paid in the first step.
    """

    nonfinite: str = "raise"

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        del shapes, state  # nothing to remember

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        means = mean_uncompressed(self, comm, parameters, state)
        paid = set(keys_of(state, RESIDUAL))
        return means, {k: v for k, v in state.items() if k not in paid}
