"""Rounds whose changes are averaged by a method of `sparcml.aggregate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import aggregate
from ..aggregate.state import RESIDUAL, key, keys_of
from .round import Round

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .base import Call
    from .fragments import Fragment
    from .state import State


@dataclass(frozen=True)
class AggregatedRound(Round):
    """Rounds whose changes are averaged by a method of `sparcml.aggregate`.

    Args:
        method: Aggregation method of the changes. Default: `sparcml.Dense()`.
    """

    method: aggregate.Method | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method is not None and not isinstance(self.method, aggregate.Method):
            raise TypeError(
                f"{type(self).__name__}: method must be an aggregation method such as "
                f"sparcml.Dense(), or None, got {self.method!r}; put a quantizer or sparsifier "
                f"into sparcml.Compressed(...)"
            )
        if self.method is not None and not self.method.returns_mean:
            raise ValueError(
                f"{type(self).__name__}: method must return a mean, got {self.method}; use "
                f"sparcml.Compressed(...)"
            )

    @property
    def aggregation(self) -> aggregate.Method:
        """The aggregation method."""
        return aggregate.Dense() if self.method is None else self.method

    def _is_average(self, call: Call) -> bool:
        return self.aggregation.is_exact and self._outer_of(call).is_average

    def _carried(self, part: Fragment, residual: Values | None, entries: State) -> State:
        residuals = {*keys_of(entries, RESIDUAL)}
        previous = {k: v for k, v in entries.items() if k not in residuals}
        if residual is None and not previous:
            return {}
        flat = np.zeros(part.size) if residual is None else residual
        gradient = flat if self.aggregation.is_exact else part.split(flat)
        pieces = gradient.items() if isinstance(gradient, dict) else [("", gradient)]
        previous |= {key(RESIDUAL, n): v.reshape(-1) for n, v in pieces if v.any()}
        return self.aggregation.init(_shapes(gradient), previous)

    def _aggregate(
        self, comm: Communicator, part: Fragment, change: Values, state: State
    ) -> tuple[Values, State]:
        gradient = change if self.aggregation.is_exact else part.split(change)
        state = state or self.aggregation.init(_shapes(gradient))
        mean, state = self.aggregation.aggregate(comm, gradient, state)
        return mean if self.aggregation.is_exact else part.join(mean), state


def _shapes(gradient: Any) -> Any:
    if isinstance(gradient, dict):
        return {name: values.shape for name, values in gradient.items()}
    return gradient.shape
