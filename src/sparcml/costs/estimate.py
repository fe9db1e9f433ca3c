"""Estimated cost of an allreduce algorithm: the declared rounds of its busiest rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from .node_cost import node_seconds
from .workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Nodes
    from .network import CostedAlgorithm, Network
    from .workload import Round

MAX_RANKS = 16  # world size up to which every rank is evaluated
MAX_PREDICTIONS = 4096  # cached per communicator
_LOCK = Lock()


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of one algorithm on the busiest rank or node.

    Attributes:
        algorithm: Name of the algorithm.
        messages: Messages that one rank sends.
        nbytes: Bytes that one rank sends.
        seconds: Time of the call.
        lossy: Whether the algorithm drops entries; `auto` never selects it then.
    """

    algorithm: str
    messages: int
    nbytes: float
    seconds: float
    lossy: bool = False


def estimate(algorithm: CostedAlgorithm, workload: Workload, network: Network) -> Estimate:
    """Estimate the cost of an algorithm, calibrated where the network has a measurement.

    Estimates are cached. Ranks that are threads need the same ones at the same time: the
    first computes, and the others wait for it.
    """
    with _LOCK:
        return _estimate(algorithm, workload, network)


@lru_cache(maxsize=1024)
def _estimate(algorithm: CostedAlgorithm, workload: Workload, network: Network) -> Estimate:
    cost = CostEstimate(algorithm, workload)
    seconds = network.calibrated_seconds(algorithm.name, cost.nbytes, cost.seconds)
    return Estimate(algorithm.name, cost.messages, cost.nbytes, seconds, algorithm.lossy)


class CostEstimate:
    """Declared cost of one algorithm for one workload, on any network."""

    def __init__(self, algorithm: CostedAlgorithm, workload: Workload) -> None:
        self._workload = workload
        self._groups = [
            (ranks, [algorithm.rounds(rank, workload) for rank in ranks])
            for ranks in _sampled_groups(workload)
        ]

    def seconds(self, network: Network) -> float:
        """Return the seconds of the busiest rank or node."""
        entry_bytes, nodes = self._workload.entry_bytes, self._workload.nodes
        if nodes is None or not nodes.is_hierarchy:
            return max(network.seconds(rounds, entry_bytes) for rounds in self._rounds)
        return max(
            node_seconds(network, nodes, ranks, rounds_of_ranks, entry_bytes)
            for ranks, rounds_of_ranks in self._groups
        )

    @cached_property
    def messages(self) -> int:
        """Number of messages that the busiest rank sends."""
        return max(sum(r.messages() for r in rounds) for rounds in self._rounds)

    @cached_property
    def nbytes(self) -> float:
        """Expected number of bytes that the busiest rank sends."""
        entry_bytes = self._workload.entry_bytes
        return max(
            sum(r.expected_nbytes(entry_bytes) for r in rounds) for rounds in self._rounds
        )

    @property
    def _rounds(self) -> list[Sequence[Round]]:
        return [rounds for _, rounds_of_ranks in self._groups for rounds in rounds_of_ranks]


def _sampled_groups(workload: Workload) -> list[tuple[int, ...]]:
    """Return ranks that represent the cost of all, grouped by node where nodes are shared.

    Ranks differ by folding, by the rounding of ranges, by their position in trees and by
    their nnz. A sample covers this, with the rank of the largest nnz and its peers.
    """
    P, nodes = workload.ranks, workload.nodes
    busiest = workload.nnz.index(max(workload.nnz))
    if nodes is not None and nodes.is_hierarchy:
        sample = range(P) if P <= MAX_RANKS else (0, busiest, P - 1)
        return sorted({tuple(nodes.node_ranks(rank)) for rank in sample})
    some = {0, 1, P // 2, P - 1, busiest, min(busiest ^ 1, P - 1)}
    return [(rank,) for rank in (range(P) if P <= MAX_RANKS else sorted(some))]


class TimePredictor:
    """Predict the seconds of allreduces on one network, with similar nnz on all ranks.

    Predictions are cached, since every call of a communicator asks for one.
    """

    def __init__(self, network: Network, nodes: Nodes) -> None:
        self._network, self._nodes = network, nodes
        self._cache: dict[tuple[str, int, float, int], float] = {}

    def seconds(
        self, algorithm: CostedAlgorithm, blocks: int, entry_bytes: float, nnz: int
    ) -> float:
        """Return the predicted seconds, given the nnz of this rank."""
        nnz = min(_rounded(nnz), blocks)
        key = algorithm.name, blocks, entry_bytes, nnz
        seconds = self._cache.get(key)
        if seconds is None:
            if len(self._cache) >= MAX_PREDICTIONS:
                self._cache.clear()
            all_nnz = (nnz,) * len(self._nodes.of)
            workload = Workload(blocks, entry_bytes, all_nnz, self._nodes)
            seconds = estimate(algorithm, workload, self._network).seconds
            self._cache[key] = seconds
        return seconds


def _rounded(nnz: int) -> int:
    """Round to 5 significant bits, so that similar calls share a prediction."""
    unit = 1 << max(0, nnz.bit_length() - 5)
    return (nnz + unit // 2) // unit * unit
