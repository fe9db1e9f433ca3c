"""Dense: the exact mean, as a baseline and where compression does not pay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ..collectives import ALLREDUCES
from .base import Method
from .compressed import Compressed
from .state import RATE, RESIDUAL, keys_of
from .uncompressed import mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..planning.candidates import Planning
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
    planning_cost: ClassVar[float] = 1.1

    nonfinite: str = "raise"

    @classmethod
    def planned(cls) -> tuple[Method, ...]:
        """Return the baseline of a plan."""
        return (cls(),)

    def planning(self, shapes: Sequence[Shape]) -> Planning:
        """Describe one allreduce of all values."""
        return replace(super().planning(shapes), label=self.name)

    def with_algorithm(self, algorithm: str) -> Method:
        """Return the method that uses this algorithm; `Dense` uses the engine's own."""
        return self if ALLREDUCES[algorithm].is_native else Compressed(algorithm=algorithm)

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        del shapes, state

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        means = mean_uncompressed(self, comm, parameters, state)
        applied = {*keys_of(state, RESIDUAL), *keys_of(state, RATE)}
        return means, {k: v for k, v in state.items() if k not in applied}
