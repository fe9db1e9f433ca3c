"""The state that virtual ranks share: clock, links, compute costs, mailboxes, waiting tasks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SparcmlError, TransportError
from ...operations import OPS
from ..control import INPUT
from .clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..base import Message
    from ..nodes import Nodes
    from .clock import Task
    from .links import Links, Transfer
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


class Mailbox:
    """Unread messages to one rank.

    Attributes:
        messages: Arrival times and messages, by source.
        control: Senders and control messages.
        waiter: The task that waits, and the peer that it waits for.
    """

    def __init__(self) -> None:
        self.messages: dict[int, deque[tuple[float, Message]]] = {}
        self.control: list[tuple[int, bytes]] = []
        self.waiter: tuple[Task, int] | None = None


class NativeAllreduce:
    """One call of the engine's own allreduce.

    Attributes:
        ready: Time at which the result is there, once all ranks have contributed.
        result: The result.
        remaining: Number of ranks that have not taken the result.
    """

    def __init__(self, size: int) -> None:
        self.ready: float | None = None
        self.result: NDArray[Any]
        self.remaining = size
        self._size = size
        self._arrays: dict[int, NDArray[Any]] = {}  # by rank

    def contribute(self, rank: int, array: NDArray[Any], op: str) -> bool:
        """Add a rank's array; the last one computes the result and returns true."""
        self._arrays[rank] = array
        if len(self._arrays) < self._size:
            return False
        self.result = self._arrays[0].copy()
        with np.errstate(all="ignore"):  # as in every other engine
            for other in range(1, self._size):
                OPS[op].ufunc(self.result, self._arrays[other], out=self.result)
        self._arrays.clear()
        return True

    def missing_rank(self, rank: int) -> int:
        """Return a rank that has not contributed, or the given one."""
        return next((r for r in range(self._size) if r not in self._arrays), rank)


class Channel:
    """The mailboxes of a group of ranks.

    Attributes:
        cluster: The cluster of the ranks.
        mailboxes: One mailbox per rank.
        native_calls: Allreduces of the engine in progress, by number.
    """

    def __init__(self, cluster: Cluster, size: int) -> None:
        self.cluster = cluster
        self.mailboxes = [Mailbox() for _ in range(size)]
        self.native_calls: dict[int, NativeAllreduce] = {}
        self._forming: dict[tuple[int, ...], tuple[Channel, int]] = {}

    def child(self, key: tuple[int, ...], size: int) -> Channel:
        """Return the channel that all ranks of one `split` share.

        It is retained until the last rank has called this: it may hold messages already.
        """
        forming = self._forming.pop(key, None)
        channel, missing = forming or (Channel(self.cluster, size), size)
        if missing > 1:
            self._forming[key] = channel, missing - 1
        return channel

    def arrive(self, source: int, target: int, message: Message, sent: Transfer) -> None:
        """Receive the first byte of a message, which fixes the time of the last one."""
        ready = sent.receive()
        box = self.mailboxes[target]
        queue = box.messages.get(source)
        if queue is None:
            queue = box.messages[source] = deque()
        queue.append((ready, message))
        if box.waiter is not None and box.waiter[1] == source:
            self.cluster.clock.wake_at(ready, box.waiter[0])

    def wake(self, rank: int) -> None:
        """Wake the rank's waiting task."""
        waiter = self.mailboxes[rank].waiter
        if waiter is not None:
            self.cluster.clock.wake(waiter[0])
