"""DCD: send the compressed difference of the model, and keep replicas of the neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..base import Method
from ..compression import Compressor, add_to, exchange_compressed
from ..replicas import load_replicas, update_replicas
from ..requirements import (
    require_compressor,
    require_doubly_stochastic,
    require_small_error,
    require_static,
    require_symmetric,
)

if TYPE_CHECKING:
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step


@dataclass(frozen=True)
class DCD(Method):
    """Difference compression D-PSGD.

        z_i = sum_j W_ij x_j - lr g_i(x_i) - x_i
        x_i <- x_i + C(z_i)

    Rank i sends C(z_i) alone. Every neighbour adds it to its replica of x_i, so replicas are
    always the same bits as x_i. Differences vanish as the models converge, and with them the
    compression errors. With C = identity it is D-PSGD.

    The theorem needs an unbiased compressor with a relative error a,
    E||C(z) - z||^2 <= a^2 ||z||^2, so small that (1 - rho)^2 - 4 mu^2 a^2 > 0, where
    mu = max |lambda_i - 1|. This is sufficient, not necessary: quantizers with 4 bits or more and
    small buckets converge on rings, too. Sparsifiers that drop more than half of the entries do
    not and are refused; use `Choco`.

    The compression errors have mean zero, so the mean of the models is kept on average.

    State: `replica/<rank>` for each neighbour. A change of topology or world size drops them;
    the next step sends the models once to restore them.

    Reference: Tang, Gan, Zhang, Zhang, Liu: Communication Compression for Decentralized
    Training, NeurIPS 2018.

    Args:
        topology: Symmetric, doubly stochastic, the same in every step.
        compress: An unbiased sparsifier or quantizer; None is the identity.
        seed: Random seed. It is combined with the step and the rank.
    """

    name: ClassVar[str] = "dcd"
    number: ClassVar[int] = 2
    keeps_mean: ClassVar[bool] = False

    compress: Compressor = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_compressor(self, self.compress, unbiased=True)
        require_small_error(self, self.compress)

    def _check_topology(self) -> None:
        require_doubly_stochastic(self, self.topology)
        require_symmetric(self, self.topology)
        require_static(self, self.topology)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        new = dict(state)
        replicas = load_replicas(call, x, state)
        z = call.weighted_sum(x, replicas, g, base=x)
        sent, received = exchange_compressed(call, self.compress, z, self.seed, state, new)
        update_replicas(call, replicas, received, new)
        return add_to(x, sent), new
