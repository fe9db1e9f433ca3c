"""BMUF: blockwise model-update filtering, model averaging with block momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from .aggregated_round import AggregatedRound
from .checks import check_fraction, check_positive
from .outer import Outer

if TYPE_CHECKING:
    from .base import Call


@dataclass(frozen=True)
class BMUF(AggregatedRound):
    """Blockwise model-update filtering.

        G = mean of x_m - W_g           after every `sync_every` inner steps from W_g
        U <- block_momentum U + block_lr G
        W <- W + U
        W_g <- W + block_momentum U     Nesterov block momentum
        W_g <- W                        classic block momentum

    With Nesterov block momentum, W_g is the shared model of DiLoCo with `outer_lr` = block_lr and
    `outer_momentum` = block_momentum. Without momentum it is model averaging. The shared model
    of the state is W_g.

    Reference: Chen, Huo: Scalable Training of Deep Learning Machines by Incremental Block
    Training with Intra-block Parallel Optimization and Blockwise Model-Update Filtering, 2016.

    Args:
        sync_every: Inner steps per block.
        method: Aggregation method. Default: `sparcml.Dense()`.
        block_momentum: Block momentum. Default: 1 - 1 / ranks.
        block_lr: Block learning rate.
        nesterov: Whether the block momentum is Nesterov's.
    """

    name: ClassVar[str] = "bmuf"
    number: ClassVar[int] = 1

    block_momentum: float | None = None
    block_lr: float = 1.0
    nesterov: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "block_lr")
        if self.block_momentum is not None:
            check_fraction(self, "block_momentum")

    @property
    def outer(self) -> Outer:
        """SGD with momentum; without a setting, that of one rank."""
        return Outer(self.block_lr, self.block_momentum or 0.0, self.nesterov)

    @property
    def _has_momentum(self) -> bool:
        return self.block_momentum is None or self.block_momentum > 0

    def _outer_of(self, call: Call) -> Outer:
        outer = super()._outer_of(call)
        if self.block_momentum is None:
            return replace(outer, momentum=1 - 1 / call.comm.size)
        return outer
