"""Sparse allreduce in two levels: inside each node first, then between the nodes.

Steps: 2 ceil(log2(n)) inside nodes of n ranks, and 2 between M nodes (M - 1 messages each).
Bytes sent per rank: the first rank of a node sends what ssar_split_allgather sends among M
ranks, of the node's sum; inside, every rank sends at most ceil(log2(n)) times the sum.

The ranks of a node add up to their first one, which forms the sum with those of the other
nodes and passes it on. A node's link then carries one vector instead of n, and what its
ranks have in common only once; so this is for slow links that several ranks share. It is
`auto`'s to choose only where some ranks share a node and others do not.

Reference: Karonis et al.: Exploiting Hierarchy in Parallel Computer Networks to Optimize
Collective Operation Performance, IPDPS 2000; in sparse form here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload, union
from ...transport import Nodes
from ..broadcast import broadcast_message
from ..reduce import reduce
from . import ssar_split_allgather as between

if TYPE_CHECKING:
    from ...stream import Stream
    from ..base import Call


def hierarchical(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks."""
    nodes = call.nodes
    mates, steps = nodes.node_ranks(call.rank), _steps(nodes)
    total = reduce(call.subgroup(mates), x, 0)
    node, message = call.subgroup(mates, steps + 2), None
    if total is not None:  # the first rank of its node
        if len(nodes.leaders) > 1:
            leaders = call.subgroup(nodes.leaders, steps)
            total = between.ssar_split_allgather(leaders, total)
        message, total = node.encode(total, 0)
    message = broadcast_message(node, message, 0)
    return node.decode(message, 0, 0) if total is None else total


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds; the rounds of all ranks are numbered alike."""
    nodes = workload.nodes or Nodes((0,) * workload.ranks)
    mates, steps = nodes.node_ranks(rank), _steps(nodes)
    turns = [_up(mates, rank, 1 << step, workload) for step in range(steps)]
    if rank == mates[0]:
        turns += _between(nodes, rank, workload)
    else:
        turns += [Round()] * 3
    total = union(workload, range(workload.ranks))
    rounds = (len(mates) - 1).bit_length()
    return turns + [_down(mates, rank, 1 << (rounds - 1 - t), total) for t in range(rounds)]


def _steps(nodes: Nodes) -> int:
    """Rounds from the last rank of the fullest node to its first."""
    return (nodes.largest - 1).bit_length()


def _up(mates: tuple[int, ...], rank: int, distance: int, workload: Workload) -> Round:
    """One round of a reduction to the first of them, up a binomial tree."""
    me = mates.index(rank)
    mine, theirs = (mates[i : i + distance] for i in (me, me + distance))
    if me % (2 * distance) == distance:
        load = union(workload, mine)
        return Round(((mates[me - distance], (load,)),), intra_node=True)
    if me % (2 * distance) == 0 and theirs:
        loads = union(workload, mine), union(workload, theirs)
        merged = sum(load.expected for load in loads)
        return Round(merged=merged, receives=loads[1:], intra_node=True)
    return Round(intra_node=True)


def _down(mates: tuple[int, ...], rank: int, distance: int, total: EntryCount) -> Round:
    """One round of the way back."""
    me = mates.index(rank)
    if me % (2 * distance) == 0 and me + distance < len(mates):
        return Round(((mates[me + distance], (total,)),), intra_node=True)
    waits = (total,) if me % (2 * distance) == distance else ()
    return Round(receives=waits, intra_node=True)


def _between(nodes: Nodes, rank: int, workload: Workload) -> list[Round]:
    """The rounds of the first ranks; how many entries a node's sum has, is not certain."""
    if len(nodes.leaders) == 1:
        return [Round()] * 3
    me = nodes.leaders.index(rank)
    sums = [union(workload, nodes.node_ranks(leader)) for leader in nodes.leaders]
    least, likely, most = (
        between.cost(me, Workload(workload.blocks, workload.entry_bytes, tuple(counts)))
        for counts in zip(*((s.min, round(s.expected), s.max) for s in sums), strict=True)
    )
    rounds = []
    for low, mid, high in zip(least, likely, most, strict=True):
        sends = tuple(
            (nodes.leaders[peer], (EntryCount(a.min, b.expected, c.max, b.blocks),))
            for (peer, (a,)), (_, (b,)), (_, (c,)) in zip(
                low.sends, mid.sends, high.sends, strict=True
            )
        )
        rounds.append(Round(sends, mid.merged, mid.written))
    return rounds
