"""Mailboxes of virtual ranks, and the engine's own allreduce."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ...operations import OPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..base import Message
    from .clock import Task
    from .cluster import Cluster
    from .links import Transfer


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
