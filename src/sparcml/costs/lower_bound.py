"""What no algorithm could do with less: latencies and bytes (SparCML, Lemma 5.1).

Every rank must receive what the sum has beyond its own entries. And a sum of k entries,
which all ranks bring, has to be formed and known everywhere: each rank sends and receives
the others' share of it. How many entries the sum has is what uniformly random places
give, E[K] = N (1 - (1 - k / N)^P). Entries take what the wire needs for values and places;
headers are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from .node_cost import alone
from .workload import Workload, union

if TYPE_CHECKING:
    from .workload import Network


def needs(workload: Workload, *, lossy: bool = False) -> tuple[int, float]:
    """Latencies and bytes on every rank; if lossy, of a sum with as few entries as one's."""
    P, k = workload.ranks, min(workload.nnz)
    if P == 1:
        return 0, 0.0
    total = k if lossy else union(workload, range(P)).expected
    formed = 2 * (P - 1) / P * _nbytes(workload, k)
    return (P - 1).bit_length(), max(formed, _nbytes(workload, total - k))


def bound(workload: Workload, network: Network, *, lossy: bool = False) -> float:
    """Seconds. Ranks that share a node may take it for one that has all their entries."""
    nodes = workload.nodes
    if nodes is not None and nodes.is_hierarchy:
        sums = [
            round(union(workload, nodes.node_ranks(rank)).expected)
            for rank in nodes.leaders
        ]
        workload = Workload(workload.blocks, workload.entry_bytes, tuple(sums))
        network = alone(network, nodes.largest)
    steps, nbytes = needs(workload, lossy=lossy)
    return network.latency * steps + network.seconds_per_byte * nbytes


def _nbytes(workload: Workload, entries: float) -> float:
    likely = wire.expected_nbytes(entries, workload.blocks, workload.entry_bytes)
    return likely - wire.expected_nbytes(0, 0, 0)
