"""Dense allreduce by recursive halving and doubling (Rabenseifner): few rounds, few bytes.

Rounds: 2 log2(P), or 2 floor(log2(P)) + 2 when P is not a power of two.
Bytes sent per rank: 2 (P - 1) / P times the dense vector; when P is not a power of two, the
paired ranks send up to one more vector.
Fan-in: 1.

In the first half each rank sends half of its partial result to the rank in the other half
of its group and adds the other half from there, until every rank holds one range of the
result. In the second half pairs of ranks exchange the ranges they hold, which doubles them
in every round.

Reference: Rabenseifner: Optimization of Collective Reduction Operations, ICCS 2004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import Round, Workload, union
from ...stream import range_offsets, split
from ...stream.ranges import empty, write_range
from .. import pipeline
from ..base import Algorithm, register
from ..fold import Fold

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def halving_doubling(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""

    def halve_and_double(fold: Fold, me: int, x: Stream) -> Stream:
        result = empty(x, x.blocks)
        start = range_offsets(x.blocks, fold.power)[me]
        write_range(result, start, halve(call, fold, me, x))
        double(call, fold, me, result)
        return result

    last = 2 * Fold(call.size).power.bit_length() - 1
    return pipeline.folded(call, call.densify(x), last, halve_and_double)


def halve(call: Call, fold: Fold, me: int, x: Stream) -> Stream:
    """Return this virtual rank's range of the result."""
    offsets = range_offsets(x.blocks, fold.power)
    first, half = 0, fold.power // 2  # x holds the ranges [first, first + 2 half)
    round = 1
    while half:
        start, middle = offsets[first], offsets[first + half]
        lower, upper = split(x, (0, middle - start, x.blocks))
        peer = fold.real(me ^ half)
        sent, retained = (lower, upper) if me & half else (upper, lower)
        pipeline.send(call, peer, sent, round)
        x = pipeline.add(call, peer, retained, round)
        first += me & half
        half //= 2
        round += 1
    return x


def double(call: Call, fold: Fold, me: int, result: Stream) -> None:
    """Complete the result, of which this virtual rank holds one range."""
    offsets = range_offsets(result.blocks, fold.power)
    round, span = fold.power.bit_length(), 1
    while span < fold.power:
        ours = me // span * span
        theirs = ours ^ span
        (part,) = split(result, (offsets[ours], offsets[ours + span]))
        peer = fold.real(me ^ span)
        pipeline.send(call, peer, part, round)
        blocks = offsets[theirs + span] - offsets[theirs]
        pipeline.receive(call, peer, result, offsets[theirs], blocks, round)
        round, span = round + 1, 2 * span


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    fold, N = Fold(workload.ranks), workload.blocks
    me, partner = fold.virtual(rank), fold.partner(rank)
    if me is None:
        assert partner is not None
        own = union(workload, [rank])
        return [Round(pipeline.segment_sends(partner, workload, own))]
    offsets = range_offsets(N, fold.power)
    halving, doubling, half = [], [], fold.power // 2
    while half:
        peer, ours = fold.real(me ^ half), me // half * half
        theirs = ours ^ half
        span = offsets[theirs + half] - offsets[theirs]
        reduced = fold.members(range(me % (2 * half), fold.power, 2 * half))
        count = union(workload, reduced, span)
        sends = pipeline.segment_sends(peer, workload, count)
        halving.append(Round(sends, written=span))
        span = offsets[ours + half] - offsets[ours]
        count = union(workload, range(workload.ranks), span)
        sends = pipeline.segment_sends(peer, workload, count)
        doubling.append(Round(sends, written=span))
        half //= 2
    rounds = halving + doubling[::-1]
    if partner is not None:
        result = union(workload, range(workload.ranks))
        unfold = Round(pipeline.segment_sends(partner, workload, result))
        rounds = [Round(written=N), *rounds, unfold]
    return rounds


register(Algorithm("halving_doubling", 13, halving_doubling, cost, is_dense=True))
