"""Early stopping: the rule on the losses of the epochs, and the best model so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .sgd_state import SGDState


def epochs_without_improvement(
    losses: Sequence[float], tol: float, floor: float = 0.0
) -> int:
    """Return the number of last epochs whose loss is not below the best before by `tol`.

    Args:
        losses: The loss of each epoch.
        tol: Fraction of the best loss before, or of `floor` if that is larger.
        floor: Loss below which a smaller one is no longer worth an epoch.
    """
    best, count = np.inf, 0
    for loss in losses:
        count = 0 if loss < min(best * (1.0 - tol), best - tol * floor) else count + 1
        best = min(best, loss)
    return count


def no_improvement(
    losses: Sequence[float], patience: int, tol: float, floor: float = 0.0
) -> bool:
    """Return whether none of the last `patience` epochs improved on all before it.

    The rule of scikit-learn's SGDClassifier, with a relative tolerance: slow but steady
    progress below `tol` per epoch counts as none.
    """
    return epochs_without_improvement(losses, tol, floor) >= patience


@dataclass(eq=False)
class BestModel:
    """A copy of the model after the epoch with the smallest validation loss.

    Attributes:
        weights: The weights; None before the first epoch.
        intercept: The intercept.
        loss: The validation loss.
        epoch: The epoch, from 1.
    """

    weights: NDArray[Any] | None = None
    intercept: float = 0.0
    loss: float = np.inf
    epoch: int = 0

    def update(self, state: SGDState) -> None:
        """Copy the model of an epoch that has just ended if it is better."""
        loss = state.validation_losses[-1]
        if self.weights is not None and loss >= self.loss:
            return
        weights = state.weights
        if self.weights is None:
            self.weights = np.empty(weights.shape, weights.dtype)
        self.weights[:] = weights
        self.intercept, self.loss, self.epoch = state.intercept, loss, state.epoch

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for `np.savez`; empty before the first epoch."""
        if self.weights is None:
            return {}
        numbers = np.array([self.intercept, self.loss, self.epoch])
        return {"best/weights": self.weights, "best/numbers": numbers}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> BestModel:
        """Restore what `arrays` returned; other arrays are ignored."""
        if "best/weights" not in arrays:
            return cls()
        intercept, loss, epoch = arrays["best/numbers"].tolist()
        return cls(arrays["best/weights"].copy(), intercept, loss, int(epoch))
