"""Where the messages of virtual ranks wait, and where ranks meet for the engine's own sum."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ..threads import REDUCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..base import Message
    from .clock import Task
    from .cluster import Cluster
    from .links import Sending


class Mailbox:
    """What has been sent to one rank and not yet been read."""

    def __init__(self) -> None:
        self.messages: dict[int, deque[tuple[float, Message]]] = {}  # (when, what) by peer
        self.control: list[tuple[int, bytes]] = []
        self.waiter: tuple[Task, int] | None = None  # and for which peer


class NativeAllreduce:
    """Where ranks bring their vectors for one call of the engine's own allreduce."""

    def __init__(self, size: int) -> None:
        self.arrays: dict[int, NDArray[Any]] = {}  # by rank
        self.size = size
        self.inside = size  # that have not left with the result
        self.ready: float | None = None
        self.total: NDArray[Any]

    def contribute(self, rank: int, array: NDArray[Any], op: str) -> bool:
        """Whether all have come; then the sum is formed, in the order of ranks."""
        self.arrays[rank] = array
        if len(self.arrays) < self.size:
            return False
        self.total = self.arrays[0].copy()
        with np.errstate(all="ignore"):  # as every other engine
            for other in range(1, self.size):
                REDUCE[op](self.total, self.arrays[other], out=self.total)
        self.arrays.clear()
        return True

    def missing_rank(self, rank: int) -> int:
        """A rank that has not come, for those who wait."""
        return next((r for r in range(self.size) if r not in self.arrays), rank)


class Channel:
    """The mailboxes of a group of ranks, and the groups that were made from it."""

    def __init__(self, cluster: Cluster, size: int) -> None:
        self.cluster = cluster
        self.mailboxes = [Mailbox() for _ in range(size)]
        self.native_calls: dict[int, NativeAllreduce] = {}
        self._forming: dict[tuple[int, ...], tuple[Channel, int]] = {}

    def child(self, key: tuple[int, ...], size: int) -> Channel:
        """The channel that all callers of the same call share; made by the first.

        It is kept until the last has come: what the first has sent may wait there.
        """
        found = self._forming.pop(key, None)
        channel, missing = found or (Channel(self.cluster, size), size)
        if missing > 1:
            self._forming[key] = channel, missing - 1
        return channel

    def arrive(self, source: int, target: int, message: Message, sending: Sending) -> None:
        """The first byte is at the receiver: it is known when the last one will be."""
        ready = sending.received()
        box = self.mailboxes[target]
        queue = box.messages.get(source)
        if queue is None:
            queue = box.messages[source] = deque()
        queue.append((ready, message))
        if box.waiter is not None and box.waiter[1] == source:
            self.cluster.clock.wake_at(ready, box.waiter[0])

    def wake(self, rank: int) -> None:
        """There is news for that rank."""
        waiter = self.mailboxes[rank].waiter
        if waiter is not None:
            self.cluster.clock.wake(waiter[0])
