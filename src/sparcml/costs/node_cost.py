"""Cost on nodes with several ranks, which share the link of the node.

The costs of a network are those of ranks that all send at the same time, as a probe measures
them. Of n ranks that share a link, each has an n-th of its bandwidth; a rank that sends
alone has all of it. Messages between ranks of the same node do not use the link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from .workload import Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Nodes
    from .network import Network


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
