"""Seconds where several ranks share a node and its link to the others.

A network's costs are those of ranks that all send at once, as they are measured. If n
ranks share a link, each of them has an n-th of it; whoever sends alone has all. Messages
inside a node do not use it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from .workload import Network, Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Nodes


def shared(network: Network, ranks: int) -> Network:
    """What messages cost if so many ranks share a link and all send at once."""
    return replace(
        network,
        latency=network.latency + (ranks - 1) * network.overhead,
        overhead=ranks * network.overhead,
        seconds_per_byte=ranks * network.seconds_per_byte,
    )


def alone(network: Network, ranks: int) -> Network:
    """The opposite: what they cost if one of so many ranks sends."""
    message = network.overhead / ranks
    return replace(
        network,
        latency=max(0.0, network.latency - (ranks - 1) * message),
        overhead=message,
        seconds_per_byte=network.seconds_per_byte / ranks,
    )


def node_seconds(
    network: Network,
    nodes: Nodes,
    mates: Sequence[int],
    costs: Sequence[Sequence[Round]],
    entry_bytes: float,
) -> float:
    """Rounds of all ranks of a node: its link carries the messages of all to others."""
    link, near = alone(network, len(mates)), nodes.intra_node
    total = 0.0
    for turns in zip_longest(*costs, fillvalue=Round()):
        outside, inside, computing = _Port(), 0.0, 0.0
        for turn in turns:
            own = _Port()  # to its memory
            for peer, loads in turn.sends:
                nbytes = sum(load.expected_nbytes(entry_bytes) for load in loads)
                (own if peer in mates else outside).send(nbytes, turn.repeat)
            for load in turn.receives:
                nbytes = load.expected_nbytes(entry_bytes)
                (own if turn.intra_node else outside).wait(nbytes, turn.repeat)
            inside = max(inside, own.seconds(near.latency, near.gap, near.seconds_per_byte))
            computing = max(computing, network.computing(turn))
        total += max(
            inside, outside.seconds(link.latency, link.overhead, link.seconds_per_byte)
        )
        total += computing
    return total


@dataclass
class _Port:
    """What passes in one round; both directions at once."""

    sent: int = 0
    sent_bytes: float = 0.0
    awaited: int = 0
    awaited_bytes: float = 0.0

    def send(self, nbytes: float, times: int) -> None:
        self.sent += times
        self.sent_bytes += times * nbytes

    def wait(self, nbytes: float, times: int) -> None:
        self.awaited += times
        self.awaited_bytes += times * nbytes

    def seconds(self, latency: float, message: float, byte: float) -> float:
        messages = max(self.sent, self.awaited)
        if not messages:
            return 0.0
        nbytes = max(self.sent_bytes, self.awaited_bytes)
        return latency + message * (messages - 1) + byte * nbytes
