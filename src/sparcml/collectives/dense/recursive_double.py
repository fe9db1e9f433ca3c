"""Dense allreduce by recursive doubling: the fewest rounds, for short vectors.

Rounds: log2(P), or floor(log2(P)) + 2 when P is not a power of two.
Bytes sent per rank: log2(P) times the dense vector.
Fan-in: 1.

The algorithm is that of ssar_recursive_double, on dense vectors from the start.

Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication
Operations in MPICH, IJHPCA 2005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload
from .. import pipeline
from ..base import Algorithm, register
from ..fold import Fold
from ..sparse import ssar_recursive_double as ssar

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def recursive_double(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""

    def double(fold: Fold, me: int, x: Stream) -> Stream:
        for round in range(1, fold.power.bit_length()):
            peer = fold.real(me ^ 1 << (round - 1))
            pipeline.send(call, peer, x, round)
            x = pipeline.add(call, peer, x, round)
        return x

    last = Fold(call.size).power.bit_length()
    return pipeline.folded(call, call.densify(x), last, double)


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of the sparse algorithm, in segments and with dense additions."""
    return [
        Round(
            tuple(
                send
                for peer, (count,) in round.sends
                for send in pipeline.segment_sends(peer, workload, count)
            ),
            written=workload.blocks if round.merged else 0,
        )
        for round in ssar.cost(rank, workload)
    ]


register(
    Algorithm("recursive_double", 12, recursive_double, cost, is_dense=True, planned=False)
)
