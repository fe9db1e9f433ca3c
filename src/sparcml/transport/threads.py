"""Ranks as threads of one process: for tests and notebooks.

A message is handed over by reference, marked read-only: nothing is copied.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import EMPTY, Message, Pending, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REDUCE = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}


class Mailbox:
    """What has been sent to one rank and not yet been read."""

    def __init__(self, size: int) -> None:
        self.changed = threading.Condition()
        self.messages: list[deque[Message]] = [deque() for _ in range(size)]
        self.control: deque[tuple[int, bytes]] = deque()
        self.arrivals = 0  # counts both, so that a waiting rank sees that there is news

    def put(self, queue: deque[Any], item: object) -> None:
        """Add to one of the queues and wake the rank that may wait for it."""
        with self.changed:
            queue.append(item)
            self.arrivals += 1
            self.changed.notify()


class ThreadGroup:
    """The mailboxes of all ranks, and the worlds that were made from this one."""

    def __init__(self, size: int) -> None:
        self.mailboxes = [Mailbox(size) for _ in range(size)]
        self._lock = threading.Lock()
        # Those that nobody uses any more are forgotten.
        self._children: weakref.WeakValueDictionary[tuple[int, ...], ThreadGroup] = (
            weakref.WeakValueDictionary()
        )

    def child(self, key: tuple[int, ...], size: int) -> ThreadGroup:
        """The group that all callers of the same call share; made by the first."""
        with self._lock:
            group = self._children.get(key)
            if group is None:
                group = self._children[key] = ThreadGroup(size)
            return group

    def broadcast_control(self, note: bytes) -> None:
        """Tell every rank, from outside."""
        for box in self.mailboxes:
            box.put(box.control, (0, note))


class _Sent(Pending):
    def poll(self) -> bool:
        return True

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: ThreadTransport
    _message: Message | None = None

    def poll(self) -> bool:
        if self._message is None:
            queue = self.transport.mailbox.messages[self.peer]
            if queue:
                self._message = queue.popleft()
        return self._message is not None

    def result(self) -> Message:
        assert self._message is not None
        return self._message


class ThreadTransport(Transport):
    """One thread's end of a `ThreadGroup`."""

    engine = "threads"

    def __init__(self, group: ThreadGroup, rank: int, timeout: float) -> None:
        super().__init__(rank, len(group.mailboxes), timeout)
        self._group = group
        self._calls = 0
        self._seen = -1
        self.mailbox = group.mailboxes[rank]

    def isend(self, peer: int, message: Message) -> Pending:
        message = message.view()
        message.flags.writeable = False
        box = self._group.mailboxes[peer]
        box.put(box.messages[self.rank], message)
        return _Sent(self, peer, f"send to rank {self.global_ranks[peer]}")

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer, f"receive from rank {self.global_ranks[peer]}")

    def send_control(self, peer: int, message: bytes) -> None:
        box = self._group.mailboxes[peer]
        box.put(box.control, (self.rank, message))

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        box = self.mailbox
        control = []
        while box.control:
            control.append(box.control.popleft())
        return control

    def idle(self, waited: float) -> None:
        del waited
        box = self.mailbox
        with box.changed:
            if box.arrivals == self._seen:  # no news since before the last poll
                box.changed.wait(0.05)
            self._seen = box.arrivals

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """Each rank reduces its share of all arrays, which it sees by reference."""
        mine = array.reshape(-1).view(np.uint8)
        arrays = [a.view(array.dtype) for a in self._everyones(mine)]
        share = slice(
            self.rank * array.size // self.size,
            (self.rank + 1) * array.size // self.size,
        )
        total = arrays[0][share].copy()
        with np.errstate(all="ignore"):  # as every other engine
            for other in arrays[1:]:
                REDUCE[op](total, other[share], out=total)
        shares = self._everyones(total.view(np.uint8))
        return np.concatenate(shares).view(array.dtype).reshape(array.shape)

    def _everyones(self, message: Message) -> list[Message]:
        others = [p for p in range(self.size) if p != self.rank]
        for peer in others:
            self.isend(peer, message)
        return [message if p == self.rank else self.receive(p) for p in range(self.size)]

    def duplicate(self) -> ThreadTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> ThreadTransport:
        self._calls += 1
        group = self._group.child((self._calls, *members), len(members))
        child = ThreadTransport(group, list(members).index(self.rank), self.timeout)
        return self.adopt(child, members)

    def release(self) -> None:
        """Nothing to give back: the garbage collector has it."""
