"""Gradient clipping during the backward pass, when the norm of the full gradient is unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Clip:
    """Limits to the norms of gradients before they are aggregated.

    Gradients are clipped before they enter the residual, so nothing is lost later.

    Attributes:
        norm: Limit to the norm of the full mean gradient. The norm of the previous step is
            used, because that of this step is known only after all gradients were sent.
        each: Limit to the norm of each tensor.
    """

    norm: float | None = None
    each: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("clip", self.norm), ("clip_each", self.each)):
            if limit is not None and not 0 < limit < math.inf:
                raise ValueError(
                    f"{name}: limit must be positive and finite, got {limit!r}"
                )

    def factor(self, previous_norm: float, own_norm: float) -> float:
        """Return the factor for a tensor.

        Args:
            previous_norm: Norm of the full mean gradient of the previous step; 0 in the first.
            own_norm: Norm of the tensor.
        """
        factor = 1.0
        if self.norm is not None and previous_norm > self.norm:
            factor = self.norm / previous_norm
        if self.each is not None and own_norm * factor > self.each:
            factor = self.each / own_norm
        return factor
