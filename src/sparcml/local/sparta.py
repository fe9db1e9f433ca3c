"""SPARTA: a small random part of the parameters is averaged after each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..quantize.code import mix_seed
from ..sparsify import RandomK
from ..validation import check_integer, check_ratio, check_real
from .base import Method
from .checks import Compared, compare_ranks

if TYPE_CHECKING:
    from ..aggregate.flat_model import Model
    from ..stream.arrays import Values
    from .base import Call
    from .state import State


@dataclass(frozen=True)
class SPARTA(Method):
    """Sparse parameter averaging.

        S = a random part of the indices, the same on all ranks
        x_m[S] <- mean of x_m[S]        after every `sync_every` inner steps

    Ranks draw the part from a common seed, so only values are sent. The mean of the models is
    kept. Without gradients the distance between models shrinks by 1 - ratio per exchange. There is
    no shared model: `averaged` averages all parameters for evaluation.

    Reference: Baioumy, Cheema: SPARTA, EXO Labs, 2025.

    Args:
        sync_every: Inner steps per exchange.
        ratio: Part of the parameters that is averaged; 1 averages all.
        seed: Random seed.
    """

    name: ClassVar[str] = "sparta"
    number: ClassVar[int] = 5

    sync_every: int = 1
    ratio: float = 0.005
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer(self, "sync_every", minimum=1)
        check_real(self, "ratio")
        check_ratio(self)
        check_integer(self, "seed")

    def exchanges(self, number: int) -> bool:
        """Return whether a part is averaged after this step."""
        return number % self.sync_every == 0

    def indices(self, number: int, size: int) -> Values | slice:
        """Return the indices of the part after a step, ascending."""
        sparsifier = RandomK(self.ratio, scaled=False, shared=True)
        seed = mix_seed(self.seed, number)
        stream = sparsifier.select(np.zeros(size, np.float32), seed=seed)
        return slice(None) if stream.raw_indices is None else stream.raw_indices

    def _begin(self, model: Model) -> State:
        del model
        return {}

    def _finish(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        return np.array(call.comm.allreduce(x, op="mean")), state

    def _step(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        compared = call.comm.cache.get(Compared)
        if compared.next.get(self) != call.number:
            compare_ranks("step", call.comm, self, call.layout, call.number, None)
        compared.next[self] = call.number + self.sync_every
        places = self.indices(call.number, x.size)
        x = x.copy()
        x[places] = call.comm.allreduce(np.ascontiguousarray(x[places]), op="mean")
        return x, dict(state)
