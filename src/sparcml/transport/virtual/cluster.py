"""What virtual ranks share: a clock, links, what computing costs, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import SparcmlError, TransportError
from ..control import INPUT
from .clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..nodes import Nodes
    from .clock import Task
    from .links import Links
    from .transport import VirtualTransport

SHOWN = 8  # of the ranks that wait, in an error message


@dataclass(frozen=True)
class Work:
    """What computing costs, in seconds an entry, on a rank of the usual speed.

    Attributes:
        coded: To code and decode it.
        merged: To bring a sparse one into a sum.
        written: To write a dense one.
        native: Seconds of the engine's own allreduce, of (nodes, values, bytes a value).
    """

    coded: float
    merged: float
    written: float
    native: Callable[[Nodes, int, int], float]


class Cluster:
    """The machine room.

    Args:
        links: What messages take.
        work: What computing takes.
        speed: How many times faster than usual each rank computes.
        delay: What is added to a computation of the rank, in seconds; may be negative.
    """

    def __init__(
        self,
        links: Links,
        work: Work,
        speed: list[float],
        delay: Callable[[int], float] | None = None,
    ) -> None:
        self.clock = Clock()
        self.links = links
        self.work = work
        self.speed = speed
        self.delay = delay
        self.sent = [0] * len(speed)  # bytes, by rank
        self.messages = [0] * len(speed)
        self.left: set[int] = set()  # ranks that have ended
        self.waiting: dict[Task, tuple[VirtualTransport, int]] = {}  # and for whom

    def compute(self, rank: int, seconds: float) -> float:
        """Let a rank compute, and whatever delays it; what that took comes back."""
        taken = seconds / self.speed[rank]
        if self.delay is not None:
            taken = max(0.0, taken + self.delay(rank))
        self.clock.sleep_until(self.clock.now + taken)
        return taken

    def stuck(self) -> None:
        """All wait, and nothing is on its way: have one of them raise, and tell all."""
        if not self.waiting:
            raise RuntimeError("simulate: tasks wait for each other, and no message")
        task = min(self.waiting, key=lambda s: s.number)
        transport, _ = self.waiting[task]
        transport.pending_error = self._divergence() or self._verdict()
        self.clock.wake(task)

    def _divergence(self) -> SparcmlError | None:
        """Ranks that wait in different calls, if there are such."""
        tried = set()
        for transport, _ in self.waiting.values():
            case = transport.channel, transport.operation
            if case in tried:
                continue
            tried.add(case)
            for other, _ in self.waiting.values():
                if other.channel == transport.channel and other is not transport:
                    transport.control.record_wait(other.rank, other.control.waiting)
            if (found := transport.control.divergence()) is not None:
                return found
        return None

    def _verdict(self) -> TransportError:
        waits = sorted(self.waiting.items(), key=lambda item: item[0].number)
        for _, (transport, peer) in waits:
            if transport.global_ranks[peer] in self.left:
                return TransportError(
                    f"rank {transport.global_ranks[peer]} has ended, and {_who(transport)} still "
                    f"waits for it in {_what(transport)}"
                )
        shown = [
            f"{_who(t)} waits for rank {t.global_ranks[peer]} in {_what(t)}"
            for _, (t, peer) in waits[:SHOWN]
        ]
        if len(waits) > SHOWN:
            shown.append(f"and {len(waits) - SHOWN} more")
        return TransportError(
            f"ranks wait for each other and no message is on its way, after "
            f"{self.clock.now:g} simulated seconds ({'; '.join(shown)}): do all ranks make "
            f"the same calls in the same order?"
        )


def _who(transport: VirtualTransport) -> str:
    return f"rank {transport.global_ranks[transport.rank]}"


def _what(transport: VirtualTransport) -> str:
    waiting = transport.control.waiting
    return "a call" if waiting is None else waiting[1].partition(INPUT)[0]
