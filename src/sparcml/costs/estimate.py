"""Estimated cost of an allreduce algorithm: the declared rounds of its busiest rank or node.

The costs of a network are those of ranks that all send at the same time, as a probe measures
them. Of n ranks that share the link of a node, each has an n-th of its bandwidth; a rank that
sends alone has all of it. Messages between ranks of the same node do not use the link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import zip_longest
from threading import Lock
from typing import TYPE_CHECKING

from .workload import Round, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Nodes
    from .network import CostedAlgorithm, Network


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


def shared(network: Network, ranks: int) -> Network:
    """Return the costs per rank if `ranks` ranks send over one link at the same time."""
    return replace(
        network,
        latency=network.latency + (ranks - 1) * network.overhead,
        overhead=ranks * network.overhead,
        seconds_per_byte=ranks * network.seconds_per_byte,
    )


def exclusive(network: Network, ranks: int) -> Network:
    """Return the costs if only one of the `ranks` ranks sends: the inverse of `shared`."""
    overhead = network.overhead / ranks
    return replace(
        network,
        latency=max(0.0, network.latency - (ranks - 1) * overhead),
        overhead=overhead,
        seconds_per_byte=network.seconds_per_byte / ranks,
    )


def node_seconds(
    network: Network,
    nodes: Nodes,
    node_ranks: Sequence[int],
    rounds_of_ranks: Sequence[Sequence[Round]],
    entry_bytes: float,
) -> float:
    """Return the seconds of one node, whose link carries the messages of all its ranks.

    Args:
        network: Costs with all ranks sending.
        nodes: Placement of the ranks, and the cost of messages within a node.
        node_ranks: Ranks of this node.
        rounds_of_ranks: Rounds of each of them.
        entry_bytes: Bytes of one block's values on the wire.
    """
    link, memory = exclusive(network, len(node_ranks)), nodes.intra_node
    total = 0.0
    for rounds in zip_longest(*rounds_of_ranks, fillvalue=Round()):
        outside, inside_seconds, compute_seconds = _RoundTraffic(), 0.0, 0.0
        for round in rounds:
            inside = _RoundTraffic()
            for peer, counts in round.sends:
                nbytes = sum(count.expected_nbytes(entry_bytes) for count in counts)
                (inside if peer in node_ranks else outside).send(nbytes, round.repeat)
            for count in round.receives:
                nbytes = count.expected_nbytes(entry_bytes)
                (inside if round.intra_node else outside).receive(nbytes, round.repeat)
            inside_seconds = max(
                inside_seconds,
                inside.seconds(memory.latency, memory.gap, memory.seconds_per_byte),
            )
            compute_seconds = max(compute_seconds, network.compute_seconds(round))
        link_seconds = outside.seconds(link.latency, link.overhead, link.seconds_per_byte)
        total += max(inside_seconds, link_seconds)
        total += compute_seconds
    return total


@dataclass
class _RoundTraffic:
    """Messages and bytes of one round in both directions, which are concurrent."""

    sent: int = 0
    sent_bytes: float = 0.0
    received: int = 0
    received_bytes: float = 0.0

    def send(self, nbytes: float, repeat: int) -> None:
        self.sent += repeat
        self.sent_bytes += repeat * nbytes

    def receive(self, nbytes: float, repeat: int) -> None:
        self.received += repeat
        self.received_bytes += repeat * nbytes

    def seconds(self, latency: float, overhead: float, seconds_per_byte: float) -> float:
        messages = max(self.sent, self.received)
        if not messages:
            return 0.0
        nbytes = max(self.sent_bytes, self.received_bytes)
        return latency + overhead * (messages - 1) + seconds_per_byte * nbytes
