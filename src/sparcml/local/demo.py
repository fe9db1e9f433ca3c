"""DeMo: the fast components of the momentum are sent, and the sign of their mean is the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..sparsify.dct_topk import DCTTopK
from ..stream import Stream
from ..validation import check_integer
from .checks import check_fraction, check_positive
from .gathered import SENDERS, gather, mean_of
from .outer import Outer
from .round import Round

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .base import Call
    from .fragments import Fragment
    from .state import State

RESIDUAL = "residual"


@dataclass(frozen=True)
class DeMo(Round):
    """Decoupled momentum optimization: all ranks keep the same model.

        e <- decay e + D_m                           D_m: this step, lr times the gradient with SGD
        q_m = the k largest cosine coefficients of each tile of e
        e <- e - inverse transform of q_m
        shared <- shared - outer_lr sign(inverse transform of the mean of q_m over their senders)

    Use SGD without momentum and weight decay as the inner optimizer; its learning rate only weighs
    the gradients of different steps. With all coefficients on a single rank it is signSGD. The
    coefficients of all parameters are sent in one message. Ranks must have processors on which
    the transform gives the same bits; if signs differ, the next exchange raises an error.

    State: `residual` of each fragment, which differs between ranks.

    Reference: Peng, Lin, Kingma, et al.: DeMo: Decoupled Momentum Optimization, 2024.

    Args:
        sync_every: Inner steps per exchange; the published method has 1.
        k: Coefficients per tile.
        side: Side of the tiles of matrices, and length of the runs of vectors.
        decay: Factor of the residual per exchange.
        outer_lr: Length of the step in each coordinate.
        weight_decay: Decoupled weight decay: the shared model shrinks by outer_lr weight_decay.
    """

    name: ClassVar[str] = "demo"
    number: ClassVar[int] = 4

    sync_every: int = 1
    k: int = 32
    side: int = 64
    decay: float = 0.999
    outer_lr: float = 4e-4
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "k", minimum=1)
        check_integer(self, "side", minimum=1)
        check_fraction(self, "decay", below_one=False)
        check_fraction(self, "weight_decay", below_one=False)
        check_positive(self, "outer_lr")

    @property
    def outer(self) -> Outer:
        """The step size."""
        return Outer(self.outer_lr)

    def _aggregate(
        self, comm: Communicator, part: Fragment, change: Values, state: State
    ) -> tuple[Values, State]:
        corrected = change
        if RESIDUAL in state:
            corrected = state[RESIDUAL] * change.dtype.type(self.decay) + change
        tiles = DCTTopK(self.k, self.side)
        pieces = part.split(corrected)
        named = pieces if isinstance(pieces, dict) else {"": pieces}
        sent, shapes, sizes = [], [], []
        with comm.stats.phase("select", nnz=change.size):
            for values in named.values():
                coefficients = tiles.transform(values.reshape(-1), values.shape)
                sent.append(tiles.select(coefficients, values.shape))
                shapes.append(values.shape)
                sizes.append(coefficients.size)
        joined = _join(sent)
        streams = gather(comm, joined, None)
        own = _inverse(tiles, joined.to_dense(), shapes, sizes)
        mean = _inverse(tiles, mean_of(streams, SENDERS), shapes, sizes)
        return mean, {RESIDUAL: corrected - own}

    def _apply(
        self, call: Call, shared: Values, momentum: Values | None, change: Values
    ) -> tuple[Values, Values | None]:
        outer = self._outer_of(call)
        kept = shared.dtype.type(1 - outer.lr * self.weight_decay)
        return outer.step(shared * kept, momentum, np.sign(change))

    def _mean_state(self, comm: Communicator, entries: State) -> State:
        return {k: np.array(comm.allreduce(v, op="mean")) for k, v in entries.items()}


def _join(streams: list[Stream]) -> Stream:
    """Return one stream of the concatenated vectors."""
    first, indices, values = 0, [], []
    for stream in streams:
        indices.append(stream.indices.astype(np.int64) + first)
        values.append(stream.raw_values)
        first += stream.size
    return Stream.unchecked(
        first, np.concatenate(indices).astype(np.uint32), np.concatenate(values)
    )


def _inverse(
    tiles: DCTTopK,
    coefficients: Values,
    shapes: list[tuple[int, ...]],
    sizes: list[int],
) -> Values:
    parts = np.split(coefficients, np.cumsum(sizes)[:-1])
    pairs = zip(parts, shapes, strict=True)
    return np.concatenate([tiles.inverse(part, shape) for part, shape in pairs])
