"""Sparse allreduce in two levels: within each node first, then between the nodes.

Rounds: 2 ceil(log2(n)) within nodes of n ranks, and 2 between M nodes (M - 1 messages each).
Bytes sent per rank: the first rank of a node sends what ssar_split_allgather sends among M
ranks, for the node's result; within a node every rank sends at most ceil(log2(n)) times the
result.
Fan-in: M - 1 between nodes, 1 within a node.

The ranks of a node reduce to their first rank. The first ranks perform an allreduce with
each other and broadcast the result within their nodes. The link of a node then carries one
vector instead of n, and entries that its ranks share only once. The algorithm is meant for
slow links that several ranks share; `auto` considers it only if some ranks share a node and
others do not.

Reference: Karonis et al.: Exploiting Hierarchy in Parallel Computer Networks to Optimize
Collective Operation Performance, IPDPS 2000; in sparse form here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload, union
from ...transport import Nodes
from ..base import Algorithm, register
from ..broadcast import broadcast_message
from ..reduce import reduce
from . import ssar_split_allgather as between

if TYPE_CHECKING:
    from ...stream import Stream
    from ..call import Call


def hierarchical(call: Call, x: Stream) -> Stream:
    """Return the result on all ranks."""
    nodes = call.nodes
    node_ranks, depth = nodes.node_ranks(call.rank), _tree_depth(nodes)
    result = reduce(call.subgroup(node_ranks), x, 0)
    node, message = call.subgroup(node_ranks, depth + 2), None
    if result is not None:  # on the first rank of the node
        if len(nodes.leaders) > 1:
            leaders = call.subgroup(nodes.leaders, depth)
            result = between.ssar_split_allgather(leaders, result)
        message, result = node.encode(result, 0)
    message = broadcast_message(node, message, 0)
    return node.decode(message, 0, 0) if result is None else result


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank, numbered alike on all ranks."""
    nodes = workload.nodes or Nodes((0,) * workload.ranks)
    node_ranks, depth = nodes.node_ranks(rank), _tree_depth(nodes)
    rounds = [_reduce_round(node_ranks, rank, 1 << bit, workload) for bit in range(depth)]
    if rank == node_ranks[0]:
        rounds += _leader_rounds(nodes, rank, workload)
    else:
        rounds += [Round()] * 3
    result = union(workload, range(workload.ranks))
    down = (len(node_ranks) - 1).bit_length()
    return rounds + [
        _broadcast_round(node_ranks, rank, 1 << (down - 1 - i), result) for i in range(down)
    ]


def _tree_depth(nodes: Nodes) -> int:
    """Return the number of rounds of the reduction within the largest node."""
    return (nodes.largest - 1).bit_length()


def _reduce_round(
    node_ranks: tuple[int, ...], rank: int, distance: int, workload: Workload
) -> Round:
    """Return one round of the reduction up a binomial tree."""
    me = node_ranks.index(rank)
    ours, theirs = (node_ranks[i : i + distance] for i in (me, me + distance))
    if me % (2 * distance) == distance:
        count = union(workload, ours)
        return Round(((node_ranks[me - distance], (count,)),), intra_node=True)
    if me % (2 * distance) == 0 and theirs:
        counts = union(workload, ours), union(workload, theirs)
        merged = sum(count.expected for count in counts)
        return Round(merged=merged, receives=counts[1:], intra_node=True)
    return Round(intra_node=True)


def _broadcast_round(
    node_ranks: tuple[int, ...], rank: int, distance: int, result: EntryCount
) -> Round:
    """Return one round of the broadcast down a binomial tree."""
    me = node_ranks.index(rank)
    if me % (2 * distance) == 0 and me + distance < len(node_ranks):
        return Round(((node_ranks[me + distance], (result,)),), intra_node=True)
    receives = (result,) if me % (2 * distance) == distance else ()
    return Round(receives=receives, intra_node=True)


def _leader_rounds(nodes: Nodes, rank: int, workload: Workload) -> list[Round]:
    """Return the rounds between the first ranks; the nnz of a node's result is uncertain."""
    if len(nodes.leaders) == 1:
        return [Round()] * 3
    me = nodes.leaders.index(rank)
    results = [union(workload, nodes.node_ranks(leader)) for leader in nodes.leaders]
    low, mid, high = (
        between.cost(me, Workload(workload.blocks, workload.entry_bytes, tuple(nnz)))
        for nnz in zip(*((r.min, round(r.expected), r.max) for r in results), strict=True)
    )
    rounds = []
    for fewest, expected, most in zip(low, mid, high, strict=True):
        sends = tuple(
            (nodes.leaders[peer], (EntryCount(a.min, b.expected, c.max, b.blocks),))
            for (peer, (a,)), (_, (b,)), (_, (c,)) in zip(
                fewest.sends, expected.sends, most.sends, strict=True
            )
        )
        rounds.append(Round(sends, expected.merged, expected.written))
    return rounds


register(Algorithm("hierarchical", 18, hierarchical, cost, multi_node=True))
