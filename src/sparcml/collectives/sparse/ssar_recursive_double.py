"""Sparse allreduce by recursive doubling: for small data, where latency dominates.

Rounds: log2(P), or floor(log2(P)) + 2 when P is not a power of two.
Bytes sent per rank: between log2(P) and P - 1 times one rank's stream.
Fan-in: 1.

In round t each rank exchanges its partial result with the rank whose number differs in bit
t, so that both hold the result of 2^(t+1) ranks. A partial result that fills up becomes dense
on the way. Both partners add the same two streams, so that all ranks end with the same bits.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019
(SSAR_Recursive_double).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ..base import Algorithm, register
from ..fold import Fold

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def ssar_recursive_double(call: Call, x: Stream) -> Stream:
    """Return the result on all ranks."""
    fold = Fold(call.size)
    me, partner = fold.virtual(call.rank), fold.partner(call.rank)
    last = fold.power.bit_length()

    if partner is not None:  # fold
        if me is None:
            call.send(partner, x, 0)
            return call.receive(partner, last)
        x = call.add(call.receive(partner, 0), x)

    assert me is not None
    for round in range(1, last):
        peer = fold.real(me ^ 1 << (round - 1))
        x, y = call.exchange(peer, x, round)
        x = call.add(x, y) if call.rank < peer else call.add(y, x)

    if partner is not None:  # unfold
        x = call.send(partner, x, last)
    return x


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    fold = Fold(workload.ranks)
    me, partner = fold.virtual(rank), fold.partner(rank)
    if me is None:
        assert partner is not None
        return [Round(((partner, (union(workload, [rank]),)),))]
    rounds = []
    if partner is not None:
        rounds.append(Round(merged=workload.nnz[rank] + workload.nnz[partner]))
    for bit in range(fold.power.bit_length() - 1):
        first = me >> bit << bit
        count = union(workload, fold.members(range(first, first + (1 << bit))))
        send = (fold.real(me ^ 1 << bit), (count,))
        rounds.append(Round((send,), merged=2 * count.expected))
    if partner is not None:
        rounds.append(Round(((partner, (union(workload, range(workload.ranks)),)),)))
    return rounds


register(Algorithm("ssar_recursive_double", 3, ssar_recursive_double, cost))
