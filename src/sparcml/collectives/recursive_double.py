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

from ..stream.switch import densify
from . import pieces
from . import ssar_recursive_double as ssar
from .cost import Problem, Round
from .folding import Fold
from .pieces import sends

if TYPE_CHECKING:
    from ..stream import Stream
    from .base import Call


def recursive_double(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    fold = Fold(call.size)
    me, partner = fold.virtual(call.rank), fold.partner(call.rank)
    last = fold.power.bit_length()
    x = densify(x)

    if partner is not None:  # fold: the even rank of a pair sits out
        if me is None:
            return pieces.sit_out(call, partner, x, 0, last)
        x = pieces.add(call, partner, x, 0)

    assert me is not None
    for turn in range(1, last):
        peer = fold.real(me ^ 1 << (turn - 1))
        pieces.send(call, peer, x, turn)
        x = pieces.add(call, peer, x, turn)

    if partner is not None:  # unfold
        pieces.send(call, partner, x, last)
    return x


def cost(rank: int, problem: Problem) -> list[Round]:
    """As with streams, but in pieces, and whole vectors are added."""
    return [
        Round(
            tuple(s for peer, (load,) in turn.sends for s in sends(peer, problem, load)),
            written=problem.blocks if turn.merged else 0,
        )
        for turn in ssar.cost(rank, problem)
    ]
