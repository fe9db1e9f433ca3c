"""Lower bound of an allreduce: latencies and bytes that no algorithm can avoid.

An entry that m of P ranks contribute must be received m - 1 times before some rank holds
its sum, and P - 1 more times before all ranks do. Over all entries these are
P k + (P - 2) K receives, if each rank contributes k entries and the result has K: on
average k + (P - 2) K / P per rank. For equal indices, K = k, and for disjoint indices,
K = P k, this is Lemma 5.1 of SparCML.

A rank also has to learn the indices of the K - k result entries that it does not have itself.
They cost what the wire format needs for indices, or nothing if the K entries are sent as a
dense vector with its N - K zeros. Headers and all work are left out.

Reference: Renggli, Ashkboos, Aghagolzadeh, Alistarh, Hoefler: SparCML, SC 2019.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from .. import wire
from .estimate import exclusive
from .network import CostTerms
from .workload import Workload, union

if TYPE_CHECKING:
    from .network import Network


def min_received(ranks: int, nnz: float, result_nnz: float) -> float:
    """Return the entries that a rank receives at least, on average over all ranks.

    Args:
        ranks: World size P.
        nnz: Entries k that each rank contributes, on average.
        result_nnz: Entries K of the result.
    """
    return nnz + (ranks - 2) / ranks * result_nnz if ranks > 1 else 0.0


def lower_bound(
    workload: Workload, *, result_nnz: float | None = None, lossy: bool = False
) -> CostTerms:
    """Return the latencies and bytes that every algorithm needs.

    Args:
        workload: Input of the allreduce. Its nodes are ignored.
        result_nnz: Entries of the result; those of uniformly random indices by default.
        lossy: Whether the result may be cut to as many entries as one rank contributes.
    """
    P = workload.ranks
    if P == 1:
        return CostTerms()
    mean, fewest = fsum(workload.nnz) / P, min(workload.nnz)
    if lossy:
        result_nnz = fewest
    elif result_nnz is None:
        result_nnz = union(workload, range(P)).expected
    average = min_received(P, mean, result_nnz) * workload.entry_bytes
    average += _index_nbytes(workload, result_nnz, mean)
    # With unequal nnz, the rank with the fewest entries may lack more than the average.
    lacking = (result_nnz - fewest) * workload.entry_bytes
    lacking += _index_nbytes(workload, result_nnz, fewest)
    return CostTerms((P - 1).bit_length(), 0.0, max(average, lacking))


def lower_bound_seconds(
    workload: Workload, network: Network, *, lossy: bool = False
) -> float:
    """Return the lower bound in seconds. A node counts as one rank with all its entries."""
    nodes = workload.nodes
    if nodes is not None and workload.is_hierarchical:
        nnz = [
            round(union(workload, nodes.node_ranks(rank)).expected)
            for rank in nodes.leaders
        ]
        workload = Workload(workload.blocks, workload.entry_bytes, tuple(nnz))
        network = exclusive(network, nodes.largest)
    return lower_bound(workload, lossy=lossy).seconds(network)


def _index_nbytes(workload: Workload, result_nnz: float, nnz: float) -> float:
    """Return the bytes that describe which blocks of the result a rank lacks."""
    lacking = result_nnz - nnz
    if lacking <= 0:
        return 0.0
    zeros = workload.blocks - result_nnz
    return min(
        wire.expected_index_nbytes(lacking, workload.blocks), zeros * workload.entry_bytes
    )
