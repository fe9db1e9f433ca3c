"""ECD: send compressed extrapolations, from which neighbours estimate the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base import Method
from ..compression import Compressor, dense, exchange_compressed
from ..replicas import load_replicas, save_replicas
from ..requirements import (
    require_compressor,
    require_doubly_stochastic,
    require_small_error,
    require_static,
    require_symmetric,
)

if TYPE_CHECKING:
    from ...stream import Stream
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

ESTIMATE, AGE = "estimate", "age"  # age: steps since the replicas were restored


@dataclass(frozen=True)
class ECD(Method):
    """Extrapolation compression D-PSGD.

        x_i' = sum_j W_ij x~_j - lr g_i(x_i)
        z_i = (1 - t/2) x_i + (t/2) x_i'                       sent as C(z_i)
        x~_i <- (1 - 2/t) x~_i + (2/t) C(z_i)                  for t = 1, 2, 3, ...

    x~_i is an estimate of x_i that rank i and its neighbours compute alike. If the compression
    error of z has a bounded variance s^2/2, the error of the estimate is s^2/t: it vanishes. With
    C = identity the estimate is x_i, and the method is D-PSGD. Since z extrapolates by t/2, the
    error of a compressor that is relative to its input grows with t: use quantizers with many
    bits.

    The compression errors have mean zero, so the mean of the models is kept on average.

    State: `estimate` of this rank, `replica/<rank>`: the estimate of each neighbour, and `age`,
    the number t - 1. A change of topology or world size drops them, and t starts at 1 again; the
    next step sends the models once.

    Reference: Tang, Gan, Zhang, Zhang, Liu: Communication Compression for Decentralized
    Training, NeurIPS 2018.

    Args:
        topology: Symmetric, doubly stochastic, the same in every step.
        compress: An unbiased sparsifier or quantizer; None is the identity.
        seed: Random seed. It is combined with the step and the rank.
    """

    name: ClassVar[str] = "ecd"
    number: ClassVar[int] = 3
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
        estimate = state.get(ESTIMATE, x)
        t = 1 + int(state.get(AGE, 0))
        moved = call.weighted_sum(estimate, replicas, g)
        z = (x + (t / 2) * (moved - x).astype(np.float64)).astype(x.dtype)
        sent, received = exchange_compressed(call, self.compress, z, self.seed, state, new)
        new[ESTIMATE] = _estimate(estimate, sent, t)
        updated = {r: _estimate(replicas[r], received[r], t) for r in replicas}
        save_replicas(updated, new)
        new[AGE] = np.array(t, np.int64)
        return moved, new


def _estimate(old: Values, sent: Stream, t: int) -> Values:
    """Return (1 - 2/t) old + (2/t) sent; all ranks compute the same bits."""
    new: Values = (1 - 2 / t) * old.astype(np.float64) + (2 / t) * dense(sent)
    return new.astype(old.dtype)
