"""DiLoCo: many local steps of AdamW, and an outer step with Nesterov momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .aggregated_round import AggregatedRound
from .checks import check_fraction, check_positive
from .outer import Outer


@dataclass(frozen=True)
class DiLoCo(AggregatedRound):
    """Distributed low-communication training.

        b <- outer_momentum b + D
        shared <- shared - outer_lr (D + outer_momentum b)

    The inner optimizer is usually AdamW; its state stays on its rank. A learning rate schedule
    counts inner steps. With `fragments`, `delay` and `mix` it is Streaming DiLoCo: an outer
    learning rate of 0.4 and a mix of 0.5 are published for it.

    Reference: Douillard et al.: DiLoCo: Distributed Low-Communication Training of Language
    Models, 2023.

    Args:
        sync_every: Inner steps per round.
        method: Aggregation method. Default: `sparcml.Dense()`.
        outer_lr: Outer learning rate.
        outer_momentum: Outer Nesterov momentum, from 0 to below 1.
    """

    name: ClassVar[str] = "diloco"
    number: ClassVar[int] = 2

    outer_lr: float = 0.7
    outer_momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "outer_lr")
        check_fraction(self, "outer_momentum")

    @property
    def outer(self) -> Outer:
        """SGD with Nesterov momentum."""
        return Outer(self.outer_lr, self.outer_momentum)
