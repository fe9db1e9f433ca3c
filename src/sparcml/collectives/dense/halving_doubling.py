"""Dense allreduce by recursive halving and doubling (Rabenseifner): few steps, few bytes.

Steps: 2 log2(P), or 2 floor(log2(P)) + 2 when P is no power of two.
Bytes sent per rank: 2 (P - 1) / P times those of the dense vector; with another number
of ranks the paired ones send up to a whole vector more.
Fan-in: 1.

First each rank gives half of what it has summed to the rank in the other half of its
group, and adds the other half from there, until everyone has one range of the sum. Then
the way back: pairs exchange all the sum they have, which doubles in every round.

Reference: Rabenseifner: Optimization of Collective Reduction Operations, ICCS 2004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ...stream import range_offsets, split
from ...stream.ranges import empty, write_range
from .. import pipeline
from ..fold import Fold

if TYPE_CHECKING:
    from ...stream import Stream
    from ..base import Call


def halving_doubling(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""

    def halve_and_double(fold: Fold, me: int, x: Stream) -> Stream:
        total = empty(x, x.blocks)
        write_range(
            total, range_offsets(x.blocks, fold.power)[me], halve(call, fold, me, x)
        )
        double(call, fold, me, total)
        return total

    last = 2 * Fold(call.size).power.bit_length() - 1
    return pipeline.folded(call, call.densify(x), last, halve_and_double)


def halve(call: Call, fold: Fold, me: int, x: Stream) -> Stream:
    """This virtual rank's range of the sum."""
    edges = range_offsets(x.blocks, fold.power)
    first, half = 0, fold.power // 2  # x holds the ranges [first, first + 2 half)
    turn = 1
    while half:
        start, middle = edges[first], edges[first + half]
        lower, upper = split(x, (0, middle - start, x.blocks))
        peer = fold.real(me ^ half)
        sent, kept = (lower, upper) if me & half else (upper, lower)
        pipeline.send(call, peer, sent, turn)
        x = pipeline.add(call, peer, kept, turn)
        first += me & half
        half //= 2
        turn += 1
    return x


def double(call: Call, fold: Fold, me: int, total: Stream) -> None:
    """Complete the sum, of which this virtual rank has one range."""
    edges = range_offsets(total.blocks, fold.power)
    turn, span = fold.power.bit_length(), 1
    while span < fold.power:
        mine = me // span * span
        theirs = mine ^ span
        (part,) = split(total, (edges[mine], edges[mine + span]))
        peer = fold.real(me ^ span)
        pipeline.send(call, peer, part, turn)
        blocks = edges[theirs + span] - edges[theirs]
        pipeline.receive(call, peer, total, edges[theirs], blocks, turn)
        turn, span = turn + 1, 2 * span


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and writes, round by round."""
    fold, N = Fold(workload.ranks), workload.blocks
    me, partner = fold.virtual(rank), fold.partner(rank)
    if me is None:
        assert partner is not None
        return [Round(pipeline.sends(partner, workload, union(workload, [rank])))]
    edges = range_offsets(N, fold.power)
    down, up, half = [], [], fold.power // 2
    while half:
        peer, mine = fold.real(me ^ half), me // half * half
        theirs = mine ^ half
        span = edges[theirs + half] - edges[theirs]
        summed = fold.members(range(me % (2 * half), fold.power, 2 * half))
        load = union(workload, summed, span)
        down.append(Round(pipeline.sends(peer, workload, load), written=span))
        span = edges[mine + half] - edges[mine]
        load = union(workload, range(workload.ranks), span)
        up.append(Round(pipeline.sends(peer, workload, load), written=span))
        half //= 2
    rounds = down + up[::-1]
    if partner is not None:
        whole = union(workload, range(workload.ranks))
        rounds = [
            Round(written=N),
            *rounds,
            Round(pipeline.sends(partner, workload, whole)),
        ]
    return rounds
