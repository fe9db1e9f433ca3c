"""An algorithm's declared rounds for one sum, and what they come to on a network."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..costs.node_cost import node_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..collectives import Algorithm
    from ..costs.workload import Network, Round, Workload

FEW = 16  # ranks of which all are looked at


class CostEstimate:
    """What the busiest rank or node does."""

    def __init__(self, algorithm: Algorithm, workload: Workload) -> None:
        self._problem = workload
        self._groups = [
            (mates, [algorithm.rounds(rank, workload) for rank in mates])
            for mates in _groups(workload)
        ]

    def seconds(self, network: Network) -> float:
        """On a network with these costs."""
        entry, nodes = self._problem.entry_bytes, self._problem.nodes
        if nodes is None or not nodes.is_hierarchy:
            return max(network.seconds(rounds, entry) for rounds in self._rounds)
        return max(
            node_seconds(network, nodes, mates, of_node, entry)
            for mates, of_node in self._groups
        )

    @cached_property
    def messages(self) -> int:
        """How many one rank sends."""
        return max(sum(r.messages() for r in rounds) for rounds in self._rounds)

    @cached_property
    def nbytes(self) -> float:
        """How many one rank sends, likely."""
        entry = self._problem.entry_bytes
        return max(sum(r.expected_nbytes(entry) for r in rounds) for rounds in self._rounds)

    @property
    def _rounds(self) -> list[Sequence[Round]]:
        return [rounds for _, of_node in self._groups for rounds in of_node]


def _groups(workload: Workload) -> list[tuple[int, ...]]:
    """Ranks that show what an algorithm costs, by node where they share some.

    Ranks differ by folding, rounding of ranges, places in trees, and what they bring: a
    few show it, the one that brings most and those it talks to among them.
    """
    P, nodes = workload.ranks, workload.nodes
    busiest = workload.nnz.index(max(workload.nnz))
    if nodes is not None and nodes.is_hierarchy:
        # Whoever shares a node with one of them has to be asked, too.
        few = range(P) if P <= FEW else (0, busiest, P - 1)
        return sorted({tuple(nodes.node_ranks(rank)) for rank in few})
    some = {0, 1, P // 2, P - 1, busiest, min(busiest ^ 1, P - 1)}
    return [(rank,) for rank in (range(P) if P <= FEW else sorted(some))]
