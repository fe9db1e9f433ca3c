"""Ranks as threads of one process, for tests and notebooks.

Messages are passed by reference and marked read-only; nothing is copied.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ..operations import OPS
from .base import EMPTY, Message, Pending, Transport
from .control import CLOSED
from .timeouts import Timeouts, resolve_timeouts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Mailbox:
    """Unread messages to one rank.

    Attributes:
        changed: Notified of every arrival.
        messages: Messages, by source.
        control: Senders and control messages.
        arrivals: Number of all arrivals so far, so that a waiting rank sees new ones.
    """

    def __init__(self, size: int) -> None:
        self.changed = threading.Condition()
        self.messages: list[deque[Message]] = [deque() for _ in range(size)]
        self.control: deque[tuple[int, bytes]] = deque()
        self.arrivals = 0

    def put(self, queue: deque[Any], item: object) -> None:
        """Append to one of the queues and wake the rank if it waits."""
        with self.changed:
            queue.append(item)
            self.arrivals += 1
            self.changed.notify()


class ThreadGroup:
    """The mailboxes of all ranks, and the groups that were made from this one."""

    def __init__(self, size: int) -> None:
        self.mailboxes = [Mailbox(size) for _ in range(size)]
        self._lock = threading.Lock()
        self._children: weakref.WeakValueDictionary[tuple[int, ...], ThreadGroup] = (
            weakref.WeakValueDictionary()
        )

    def child(self, key: tuple[int, ...], size: int) -> ThreadGroup:
        """Return the group that all ranks of one `split` share; the first creates it."""
        with self._lock:
            group = self._children.get(key)
            if group is None:
                group = self._children[key] = ThreadGroup(size)
            return group

    def broadcast_control(self, message: bytes) -> None:
        """Send a control message to every rank, from outside."""
        for box in self.mailboxes:
            box.put(box.control, (0, message))


class _Sending(Pending):
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
    """One thread's end of a `ThreadGroup`.

    Args:
        group: The ranks.
        rank: This thread's rank.
        timeout: Limit of every wait in seconds, or all timeouts; None: by the environment.
    """

    engine = "threads"

    def __init__(
        self, group: ThreadGroup, rank: int, timeout: Timeouts | float | None = None
    ) -> None:
        timeouts = timeout if isinstance(timeout, Timeouts) else resolve_timeouts(timeout)
        super().__init__(rank, len(group.mailboxes), timeouts)
        self._group = group
        self._seen_arrivals = -1
        self.mailbox = group.mailboxes[rank]

    def isend(self, peer: int, message: Message) -> Pending:
        message = message.view()
        message.flags.writeable = False
        box = self._group.mailboxes[peer]
        box.put(box.messages[self.rank], message)
        return _Sending(self, peer, f"send to rank {self.global_ranks[peer]}")

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer, f"receive from rank {self.global_ranks[peer]}")

    def send_control(self, peer: int, message: bytes) -> None:
        box = self._group.mailboxes[peer]
        box.put(box.control, (self.rank, message))

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        control, messages = self.mailbox.control, []
        while control:
            messages.append(control.popleft())
        return messages

    def idle(self, waited: float) -> None:
        del waited
        box = self.mailbox
        with box.changed:
            if box.arrivals == self._seen_arrivals:  # none since before the last poll
                box.changed.wait(0.05)
            self._seen_arrivals = box.arrivals

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """Reduce one range per rank of all arrays, which are passed by reference."""
        flat = array.reshape(-1).view(np.uint8)
        arrays = [message.view(array.dtype) for message in self._exchange_all(flat)]
        owned = slice(
            self.rank * array.size // self.size,
            (self.rank + 1) * array.size // self.size,
        )
        reduced = arrays[0][owned].copy()
        with np.errstate(all="ignore"):  # as in every other engine
            for other in arrays[1:]:
                OPS[op].ufunc(reduced, other[owned], out=reduced)
        ranges = self._exchange_all(reduced.view(np.uint8))
        return np.concatenate(ranges).view(array.dtype).reshape(array.shape)

    def _exchange_all(self, message: Message) -> list[Message]:
        others = [p for p in range(self.size) if p != self.rank]
        for peer in others:
            self.isend(peer, message)
        return [message if p == self.rank else self.receive(p) for p in range(self.size)]

    def duplicate(self) -> ThreadTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> ThreadTransport:
        group = self._group.child((self.child_count, *members), len(members))
        child = ThreadTransport(group, list(members).index(self.rank), self.timeouts)
        return self.add_sibling(child, members)

    def release(self) -> None:
        """Tell the peers; the garbage collector frees the mailboxes."""
        if self.control.failure is None:
            self.control.leave(CLOSED)
