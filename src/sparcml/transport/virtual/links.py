"""How long a message takes: latency and bandwidth, one at a time in each direction.

A message occupies its sender's port from its first to its last byte, and its receiver's
port the same time later; in between passes the latency. Ports carry both directions at
once. Whatever finds a port occupied waits, first come, first served. Where something on
the way is slower than a port, the port has time for other messages meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Link:
    """What a message costs, in seconds.

    Attributes:
        latency: From the first byte sent to the first byte received.
        gap: Between two messages on one port.
        byte: For each byte.
    """

    latency: float
    gap: float
    byte: float


@dataclass
class Port:
    """One direction of a link; `slow` is how many times slower it is than others."""

    slow: float = 1.0
    free: float = field(default=0.0, init=False)  # when the next message may begin

    def take(self, now: float, seconds: float, gap: float) -> tuple[float, float]:
        """A place for a message that usually takes so long: its start and its end."""
        start = max(now, self.free)
        end = start + seconds * self.slow
        self.free = end + gap
        return start, end


class Sending(NamedTuple):
    """A message that has a place at its sender's port."""

    left: float  # when its last byte has left the sender
    first: float  # when its first byte gets to the receiver
    last: float  # when its last byte does, if the receiver is ready for it
    seconds: float  # that it takes at a port of the usual speed
    gap: float
    port: Port  # of the receiver

    def received(self) -> float:
        """Its turn at the receiver's port: when its last byte is there."""
        _, end = self.port.take(self.first, self.seconds, self.gap)
        return max(end, self.last)


class Links:
    """Ranks, each on a node; those of one node share its port to the others.

    Args:
        ranks: How many.
        between: The links between nodes.
        inside: What connects ranks of one node.
        per_node: How many ranks a node has.
        slow: How many times slower than others is what a rank sends and receives, or
            what goes from one rank to another.
    """

    def __init__(
        self,
        ranks: int,
        between: Link,
        inside: Link | None = None,
        per_node: int = 1,
        slow: Mapping[int | tuple[int, int], float] | None = None,
    ) -> None:
        self._between, self._inside = between, inside or between
        self._per_node = per_node
        self._ways = {k: Port(v) for k, v in (slow or {}).items() if isinstance(k, tuple)}
        ports = {k: v for k, v in (slow or {}).items() if isinstance(k, int)}
        nodes = range(0, ranks, per_node)
        worst = [
            max(ports.get(rank, 1.0) for rank in range(first, first + per_node))
            for first in nodes
        ]
        self._out = [Port(slow) for slow in worst]
        self._into = [Port(slow) for slow in worst]
        self._out_inside = [Port(ports.get(rank, 1.0)) for rank in range(ranks)]
        self._into_inside = [Port(ports.get(rank, 1.0)) for rank in range(ranks)]

    def send(self, now: float, source: int, target: int, nbytes: int) -> Sending:
        """Take a place at the sender's port."""
        home, away = source // self._per_node, target // self._per_node
        if home == away:
            link, out, into = (
                self._inside,
                self._out_inside[source],
                self._into_inside[target],
            )
        else:
            link, out, into = self._between, self._out[home], self._into[away]
        seconds = nbytes * link.byte
        start, left = out.take(now, seconds, link.gap)
        last = left
        if (way := self._ways.get((source, target))) is not None:
            _, passed = way.take(start, seconds, link.gap)
            last = max(left, passed)
        first, last = start + link.latency, last + link.latency
        return Sending(left, first, last, seconds, link.gap, into)
