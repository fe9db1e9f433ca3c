"""Dense: the exact mean, as a baseline and where compression does not pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
    """The exact mean of the gradients, in one allreduce.

    Sparse gradients (streams, sparse tensors) are sent as sparse. The residual of an earlier
    method is applied in the first step.

    Args:
        nonfinite: "raise" or "propagate", see `Method`.
    """

    name: ClassVar[str] = "dense"
    number: ClassVar[int] = 0
    is_exact: ClassVar[bool] = True

    nonfinite: str = "raise"

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        del shapes, state

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        means = mean_uncompressed(self, comm, parameters, state)
        applied = set(keys_of(state, RESIDUAL))
        return means, {k: v for k, v in state.items() if k not in applied}
