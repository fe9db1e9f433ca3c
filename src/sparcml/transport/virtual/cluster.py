"""The state that virtual ranks share: clock, links, compute costs, and waiting tasks."""

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

SHOWN_WAITS = 8  # in an error message


@dataclass(frozen=True)
class Work:
    """Compute costs, in seconds per entry, on a rank of normal speed.

    Attributes:
        encoded: To encode and decode an entry.
        merged: To merge a sparse entry into a result.
        written: To write a dense entry.
        native: Seconds of the engine's own allreduce, by nodes, values and bytes per value.
    """

    encoded: float
    merged: float
    written: float
    native: Callable[[Nodes, int, int], float]


class Cluster:
    """The simulated machines.

    Args:
        links: Costs of messages.
        work: Costs of computing.
        speed: Speed factor of each rank.
        delay: Returns the seconds that are added to a computation of a rank; may be negative.

    Attributes:
        sent: Bytes sent, by rank.
        messages: Messages sent, by rank.
        left: Ranks that have ended.
        waiting: The transport and the peer of each waiting task.
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
        self.sent = [0] * len(speed)
        self.messages = [0] * len(speed)
        self.left: set[int] = set()
        self.waiting: dict[Task, tuple[VirtualTransport, int]] = {}

    def compute(self, rank: int, seconds: float) -> float:
        """Let a rank compute; return the time, including its speed and its delay."""
        elapsed = seconds / self.speed[rank]
        if self.delay is not None:
            elapsed = max(0.0, elapsed + self.delay(rank))
        self.clock.sleep_until(self.clock.now + elapsed)
        return elapsed

    def raise_deadlock(self) -> None:
        """Raise in one of the waiting tasks: all wait, and no message is in flight."""
        if not self.waiting:
            raise RuntimeError("simulate: tasks of a rank wait for each other")
        task = min(self.waiting, key=lambda t: t.number)
        transport, _ = self.waiting[task]
        transport.pending_error = self._find_mismatch() or self._describe_deadlock()
        self.clock.wake(task)

    def _find_mismatch(self) -> SparcmlError | None:
        """Return an error if ranks wait in different calls, else None."""
        checked = set()
        for transport, _ in self.waiting.values():
            case = transport.channel_id, transport.operation
            if case in checked:
                continue
            checked.add(case)
            for other, _ in self.waiting.values():
                if other.channel_id == transport.channel_id and other is not transport:
                    transport.control.record_wait(other.rank, other.control.waiting)
            if (mismatch := transport.control.find_mismatch()) is not None:
                return mismatch
        return None

    def _describe_deadlock(self) -> TransportError:
        waits = sorted(self.waiting.items(), key=lambda item: item[0].number)
        for _, (transport, peer) in waits:
            if transport.global_ranks[peer] in self.left:
                return TransportError(
                    f"rank {transport.global_ranks[peer]} has ended, and "
                    f"{_name(transport)} still waits for it in {_call(transport)}"
                )
        shown = [
            f"{_name(t)} waits for rank {t.global_ranks[peer]} in {_call(t)}"
            for _, (t, peer) in waits[:SHOWN_WAITS]
        ]
        if len(waits) > SHOWN_WAITS:
            shown.append(f"and {len(waits) - SHOWN_WAITS} more")
        return TransportError(
            f"ranks wait for each other and no message is in flight, after "
            f"{self.clock.now:g} simulated seconds ({'; '.join(shown)}): check that all "
            f"ranks make the same calls in the same order"
        )


def _name(transport: VirtualTransport) -> str:
    return f"rank {transport.global_ranks[transport.rank]}"


def _call(transport: VirtualTransport) -> str:
    waiting = transport.control.waiting
    return "a call" if waiting is None else waiting[1].partition(INPUT)[0]
