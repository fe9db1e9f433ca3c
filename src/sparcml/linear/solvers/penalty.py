"""What large weights cost: l1 |w| + l2/2 w^2, summed over all but the intercept.

LearningRate apply it lazily: a weight whose feature is in no row of the batch is not touched, and
what the penalty would have done to it meanwhile is made up for when it is next looked at.
That is no approximation: up to rounding, all weights are as if they had been penalised in every
step. l2 shrinks all weights by one factor, which is kept beside them. l1 then moves each
towards zero by a distance that depends on the steps alone, so a running sum of them
and the step of a weight's last change say how far it has to go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...validation import check_real

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Penalty:
    """Elastic net; with one of both at zero, the lasso or ridge.

    Args:
        l1: Of the sum of magnitudes.
        l2: Of half the sum of squares.
    """

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            check_real(self, name)
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"Penalty: {name} must be finite and >= 0, got {getattr(self, name)!r}"
                )

    @classmethod
    def mixed(cls, strength: float, l1_ratio: float) -> Self:
        """So much of l1, and the rest of l2, as scikit-learn counts it."""
        if not 0 <= l1_ratio <= 1:
            raise ValueError(f"Penalty: l1_ratio must be in [0, 1], got {l1_ratio!r}")
        return cls(strength * l1_ratio, strength * (1 - l1_ratio))

    def value(self, weights: NDArray[Any]) -> float:
        """The penalty of these weights."""
        size = np.abs(weights).sum(dtype=np.float64) if self.l1 else 0.0
        squares = np.vdot(weights, weights) if self.l2 else 0.0
        return float(self.l1 * size + 0.5 * self.l2 * squares)
