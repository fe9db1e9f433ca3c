"""Dense allreduce by recursive doubling: the fewest steps, for short vectors.

Steps: log2(P), or floor(log2(P)) + 2 when P is no power of two.
Bytes sent per rank: log2(P) times those of the dense vector.
Fan-in: 1.

As ssar_recursive_double, but dense from the start.

Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication
Operations in MPICH, IJHPCA 2005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload
from .. import pipeline
from ..fold import Fold
from ..sparse import ssar_recursive_double as ssar

if TYPE_CHECKING:
    from ...stream import Stream
    from ..base import Call


def recursive_double(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""

    def double(fold: Fold, me: int, x: Stream) -> Stream:
        for turn in range(1, fold.power.bit_length()):
            peer = fold.real(me ^ 1 << (turn - 1))
            pipeline.send(call, peer, x, turn)
            x = pipeline.add(call, peer, x, turn)
        return x

    return pipeline.folded(
        call, call.densify(x), Fold(call.size).power.bit_length(), double
    )


def cost(rank: int, workload: Workload) -> list[Round]:
    """As with streams, but in pieces, and whole vectors are added."""
    return [
        Round(
            tuple(
                s
                for peer, (load,) in turn.sends
                for s in pipeline.sends(peer, workload, load)
            ),
            written=workload.blocks if turn.merged else 0,
        )
        for turn in ssar.cost(rank, workload)
    ]
