"""Times of messages: latency and bandwidth, one message at a time per direction.

A message occupies its sender's port from its first to its last byte, and its receiver's
port for the same time, one latency later. Both directions of a port are independent. A
message that finds a port occupied waits, first come, first served. If another part of the
path is slower than a port, the port serves other messages meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Link:
    """Cost of a message, in seconds.

    Attributes:
        latency: From the first byte sent to the first byte received.
        gap: Between two messages on one port.
        seconds_per_byte: Inverse of the bandwidth.
    """

    latency: float
    gap: float
    seconds_per_byte: float


@dataclass
class LinkPort:
    """One direction of a link.

    Attributes:
        slowdown: Factor on the time of every message.
        free: Time at which the next message may start.
    """

    slowdown: float = 1.0
    free: float = field(default=0.0, init=False)

    def reserve(self, now: float, seconds: float, gap: float) -> tuple[float, float]:
        """Reserve the port for a message; return its start and end."""
        start = max(now, self.free)
        end = start + seconds * self.slowdown
        self.free = end + gap
        return start, end


class Transfer(NamedTuple):
    """A message that has reserved its sender's port.

    Attributes:
        left: Time at which the last byte has left the sender.
        first: Time at which the first byte reaches the receiver.
        last: Earliest time at which the last byte reaches the receiver.
        seconds: Time at a port without a slowdown.
        gap: Gap of the link.
        port: The receiver's port.
    """

    left: float
    first: float
    last: float
    seconds: float
    gap: float
    port: LinkPort

    def receive(self) -> float:
        """Reserve the receiver's port; return the time of the last byte."""
        _, end = self.port.reserve(self.first, self.seconds, self.gap)
        return max(end, self.last)


class Links:
    """The links of all ranks; the ranks of a node share its port to other nodes.

    Args:
        ranks: Number of ranks.
        inter_node: Link between nodes.
        intra_node: Link between the ranks of a node.
        ranks_per_node: Number of ranks per node.
        slow: Slowdown factor of a rank's link, by rank, or of the path between two ranks,
            by (source, target).
    """

    def __init__(
        self,
        ranks: int,
        inter_node: Link,
        intra_node: Link | None = None,
        ranks_per_node: int = 1,
        slow: Mapping[int | tuple[int, int], float] | None = None,
    ) -> None:
        self._inter_node, self._intra_node = inter_node, intra_node or inter_node
        self._ranks_per_node = ranks_per_node
        factors = slow or {}
        self._paths = {k: LinkPort(v) for k, v in factors.items() if isinstance(k, tuple)}
        of_rank = [factors.get(rank, 1.0) for rank in range(ranks)]
        of_node = [
            max(of_rank[first : first + ranks_per_node])
            for first in range(0, ranks, ranks_per_node)
        ]
        self._node_out = [LinkPort(factor) for factor in of_node]
        self._node_in = [LinkPort(factor) for factor in of_node]
        self._rank_out = [LinkPort(factor) for factor in of_rank]
        self._rank_in = [LinkPort(factor) for factor in of_rank]

    def send(self, now: float, source: int, target: int, nbytes: int) -> Transfer:
        """Reserve the sender's port for a message."""
        home, away = source // self._ranks_per_node, target // self._ranks_per_node
        if home == away:
            link, out, into = (
                self._intra_node,
                self._rank_out[source],
                self._rank_in[target],
            )
        else:
            link, out, into = self._inter_node, self._node_out[home], self._node_in[away]
        seconds = nbytes * link.seconds_per_byte
        start, left = out.reserve(now, seconds, link.gap)
        last = left
        if (path := self._paths.get((source, target))) is not None:
            _, passed = path.reserve(start, seconds, link.gap)
            last = max(left, passed)
        first, last = start + link.latency, last + link.latency
        return Transfer(left, first, last, seconds, link.gap, into)
