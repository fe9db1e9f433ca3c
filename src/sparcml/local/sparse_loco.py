"""SparseLoCo: the largest changes of each chunk, in two bits, with a decayed residual."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..aggregate.error_feedback import update_residual
from ..quantize import Codebook, Quantizer
from ..sparsify import TopK
from ..validation import check_integer
from .checks import check_fraction, check_positive, refuse_residual
from .gathered import MEANS, gather, mean_of
from .outer import Outer
from .round import Round
from .state import with_aggregate_state

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .fragments import Fragment
    from .state import State

RESIDUAL = "residual"


@dataclass(frozen=True)
class SparseLoCo(Round):
    """Rounds whose changes are sparsified and quantized, with error feedback.

        e <- decay e + D_m                                  on rank m
        s_m = quantize(the k largest of each chunk of e)
        e <- e - s_m
        shared <- shared - outer_lr mean of s_m

    What is not sent stays in e and decays, so e also acts as momentum; there is no outer
    momentum by default. The mean over "senders" divides each entry by the number of ranks that sent
    it; its steps are 2 to 8 times as long as those of the mean over "all", depending on how much
    the ranks' selections overlap, so learning rates do not carry over.

    64 of 4096 values cost about 9.5 bits each with their indices: 210 times fewer bytes than the
    model in float32. Chunks are runs of the flat model; the published code has tiles of 64 x 64.

    State: `residual` of each fragment, which differs between ranks.

    Reference: Sarfi et al.: Communication Efficient LLM Pre-training with SparseLoCo, 2025.

    Args:
        sync_every: Inner steps per round.
        k: Entries that are sent per chunk.
        chunk: Values per chunk.
        quantize: Quantizer of the entries; None sends them as they are.
        decay: Factor of the residual per round, from 0 to 1. 1 loses nothing.
        error_feedback: Whether to keep a residual.
        mean: "senders" or "all".
        outer_lr: Outer learning rate.
        outer_momentum: Outer Nesterov momentum.
    """

    name: ClassVar[str] = "sparse_loco"
    number: ClassVar[int] = 3

    k: int = 64
    chunk: int = 4096
    quantize: Quantizer | None = field(default_factory=Codebook)
    decay: float = 0.95
    error_feedback: bool = True
    mean: str = "senders"
    outer_lr: float = 1.0
    outer_momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "k", minimum=0)
        check_integer(self, "chunk", minimum=1)
        if self.quantize is not None and not isinstance(self.quantize, Quantizer):
            raise TypeError(
                f"SparseLoCo: quantize must be a quantizer such as sparcml.quantize.Codebook(), "
                f"or None, got {self.quantize!r}"
            )
        check_fraction(self, "decay", below_one=False)
        if self.mean not in MEANS:
            raise ValueError(
                f"SparseLoCo: mean must be {' or '.join(MEANS)}, got {self.mean!r}"
            )
        check_positive(self, "outer_lr")
        check_fraction(self, "outer_momentum")

    @property
    def outer(self) -> Outer:
        """SGD."""
        return Outer(self.outer_lr, self.outer_momentum)

    def _aggregate(
        self, comm: Communicator, part: Fragment, change: Values, state: State
    ) -> tuple[Values, State]:
        del part
        residual = np.zeros_like(change) if RESIDUAL not in state else state[RESIDUAL]
        if not self.k:  # the residual is then the buffer of heavy-ball momentum
            kept = residual * residual.dtype.type(self.decay) + change
            return np.zeros_like(change), self._state(kept)
        sparsifier = TopK(k=min(self.k, self.chunk), bucket=self.chunk)
        with comm.stats.phase("select", nnz=change.size):
            selection = sparsifier.select_with_residual(residual, change, scale=self.decay)
        streams = gather(comm, selection.sent, self.quantize)
        kept = selection.residual
        if self.quantize is not None:
            kept = update_residual(selection, streams[comm.rank])
        return mean_of(streams, self.mean), self._state(kept)

    def _carried(self, part: Fragment, residual: Values | None, entries: State) -> State:
        if residual is not None and not self.error_feedback:
            why = " without error feedback"
            refuse_residual(self, with_aggregate_state({}, 0, entries), why)
        return super()._carried(part, residual, entries)

    def _state(self, residual: Values) -> State:
        return {RESIDUAL: residual} if self.error_feedback else {}

    def _mean_state(self, comm: Communicator, entries: State) -> State:
        return {k: np.array(comm.allreduce(v, op="mean")) for k, v in entries.items()}
