"""Polling what gloo has begun, though gloo can only wait.

gloo has no test for completion: a send or receive is done when a blocking wait returns,
and a wait that runs out of time breaks every connection of the group. So other threads
wait for us, without an end; and when we have had enough, we break the group ourselves,
which wakes them. While they wait this thread may post more: gloo locks what it shares.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FOREVER = timedelta(days=365)


class WaiterPool:
    """Threads that wait for operations, one each."""

    def __init__(self) -> None:
        self.missed: set[Operation] = set()  # what was looked for and has not arrived
        self._news = threading.Event()
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def put(self, operation: Operation) -> None:
        """Have a thread wait for it."""
        if not self._free.acquire(blocking=False):
            thread = threading.Thread(target=self._body, name="gloo wait", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put(operation)

    def _body(self) -> None:
        while (operation := self._queue.get()) is not None:
            operation.finish()
            del operation  # or this thread would hold its buffer until the next one comes
            self._free.release()
            self._news.set()

    def sleep(self, seconds: float) -> None:
        """Until one of them has ended, or what was missed has arrived, or time is up."""
        for operation in self.missed:
            operation.watch()
        self.missed.clear()
        self._news.wait(seconds)
        self._news.clear()

    def end(self) -> None:
        """End the threads; whatever they wait for has been broken."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(5.0)


class Operation:
    """An operation that gloo has begun; it keeps the buffer alive.

    Args:
        waiters: Who waits for it if need be.
        work: What gloo returned.
        buffer: What is sent or received.
        arrived: For a receive, a cheap look at the buffer: whether its last byte has
            come. Bytes arrive in order, so a wait is then over at once.
    """

    def __init__(
        self,
        waiters: WaiterPool,
        work: Any,
        buffer: NDArray[Any],
        arrived: Callable[[], bool] | None = None,
    ) -> None:
        self._waiters = waiters
        self._work = work
        self.buffer = buffer
        self._arrived = arrived
        self._over = False
        self._watched = False
        self._error: RuntimeError | None = None

    def done(self) -> bool:
        """Whether it is; never waits. RuntimeError if the connection is lost."""
        if not self._over and not self._watched:
            self._look()
        if self._error is not None:
            raise self._error
        return self._over

    def seen(self) -> bool:
        """Whether it has arrived; no thread is asked to wait for it."""
        assert self._arrived is not None
        if not self._over and self._arrived():
            self.finish()
        return self._over and self._error is None

    def _look(self) -> None:
        if self._arrived is None:
            self.watch()
        elif self._arrived():
            self.finish()
        else:
            self._waiters.missed.add(self)

    def watch(self) -> None:
        """Have a thread wait for it, and nobody else: a second wait would never return."""
        if not self._over and not self._watched:
            self._watched = True
            self._waiters.put(self)

    def finish(self) -> None:
        """Wait for it."""
        try:
            self._work.wait(FOREVER)
        except RuntimeError as error:
            self._error = error
        self._over = True
