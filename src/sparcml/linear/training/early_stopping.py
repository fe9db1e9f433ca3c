"""The best model of a run that is judged by held-out rows: one more model in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..solvers.sgd_state import SGDState


@dataclass(eq=False)
class BestModel:
    """The model after the pass with the smallest loss on held-out rows.

    Attributes:
        weights: A copy; None before the first pass.
        intercept: Beside them.
        loss: On the held-out rows.
        epoch: The pass, from 1.
    """

    weights: NDArray[Any] | None = None
    intercept: float = 0.0
    loss: float = np.inf
    epoch: int = 0

    def update(self, state: SGDState) -> None:
        """Take the model of a pass that is just complete, if it is better."""
        if self.weights is not None and state.held_out[-1] >= self.loss:
            return
        found = state.weights
        if self.weights is None:
            self.weights = np.empty(found.shape, found.dtype)
        self.weights[:] = found
        self.intercept, self.loss = state.intercept, state.held_out[-1]
        self.epoch = state.epoch

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for `np.savez`; none if there is none yet."""
        if self.weights is None:
            return {}
        numbers = np.array([self.intercept, self.loss, self.epoch])
        return {"best/weights": self.weights, "best/numbers": numbers}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> BestModel:
        """From what `arrays` gave, and others."""
        if "best/weights" not in arrays:
            return cls()
        intercept, loss, epoch = arrays["best/numbers"].tolist()
        return cls(arrays["best/weights"].copy(), intercept, loss, int(epoch))
