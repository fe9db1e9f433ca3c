"""Clipping where the whole gradient is not known yet: while the backward pass goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Clip:
    """How large gradients may be when they enter a method.

    What is cut off here was never owed, so that nothing is lost on the way.

    Attributes:
        norm: Gradients are multiplied with norm / (norm of the whole mean gradient of the
            step before) if that was larger: its own is known only when all is sent.
        each: Every tensor's own norm is at most this.
    """

    norm: float | None = None
    each: float | None = None

    def __post_init__(self) -> None:
        for what, limit in (("clip", self.norm), ("clip_each", self.each)):
            if limit is not None and not 0 < limit < math.inf:
                raise ValueError(f"{what} must be positive and finite, got {limit!r}")

    def factor(self, before: float, own: float) -> float:
        """What a tensor is multiplied with.

        Args:
            before: The norm of the whole mean gradient one step before; 0 if there was none.
            own: The tensor's norm.
        """
        factor = 1.0
        if self.norm is not None and before > self.norm:
            factor = self.norm / before
        if self.each is not None and own * factor > self.each:
            factor = self.each / own
        return factor
