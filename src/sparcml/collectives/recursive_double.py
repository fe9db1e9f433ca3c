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
from . import ssar_recursive_double as ssar
from .cost import Problem, Round

if TYPE_CHECKING:
    from ..stream import Stream
    from .base import Call


def recursive_double(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    return ssar.ssar_recursive_double(call, densify(x))


def cost(rank: int, problem: Problem) -> list[Round]:
    """The same messages as with streams, but whole vectors are added."""
    return [
        Round(turn.sends, written=problem.blocks if turn.merged else 0)
        for turn in ssar.cost(rank, problem)
    ]
