"""NaiveQuantized: D-PSGD on compressed models, for comparison; it does not converge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..base import Method
from ..compression import Compressor, dense, exchange_compressed
from ..requirements import require_compressor

if TYPE_CHECKING:
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step


@dataclass(frozen=True)
class NaiveQuantized(Method):
    """D-PSGD whose models are compressed whenever they are sent.

        x_i <- W_ii x_i + sum_(j != i) W_ij C(x_j) - lr g_i(x_i)

    For comparison only. The compression error of a model does not vanish as the models converge,
    so the loss stalls at a floor that is proportional to it. `DCD`, `ECD` and `Choco` send as
    few bits and compress differences, which vanish.

    The mean of the models is not kept: each step changes it by compression errors.

    Args:
        topology: Doubly stochastic, of any period.
        compress: A sparsifier or a quantizer; None sends models as they are.
        seed: Random seed. It is combined with the step and the rank.
    """

    name: ClassVar[str] = "naive_quantized"
    number: ClassVar[int] = 1
    keeps_mean: ClassVar[bool] = False

    compress: Compressor = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_compressor(self, self.compress, unbiased=False)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        new = dict(state)
        _, received = exchange_compressed(call, self.compress, x, self.seed, state, new)
        others = {rank: dense(stream) for rank, stream in received.items()}
        return call.weighted_sum(x, others, g), new
