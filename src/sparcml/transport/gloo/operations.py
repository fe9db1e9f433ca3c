"""Polling of gloo operations.

gloo has no test for completion: a send or receive is complete when a blocking wait
returns, and a wait that times out breaks every connection of the group. Therefore other
threads wait without a timeout. To give up, this process breaks the group, which wakes
them. Meanwhile this thread may post more operations: gloo locks its shared state.
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
    """Threads that wait for operations, one operation each.

    Attributes:
        unfinished: Operations that were polled and had not arrived.
    """

    def __init__(self) -> None:
        self.unfinished: set[Operation] = set()
        self._completed = threading.Event()
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def put(self, operation: Operation) -> None:
        """Let a thread wait for the operation."""
        if not self._free.acquire(blocking=False):
            thread = threading.Thread(target=self._body, name="gloo wait", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put(operation)

    def _body(self) -> None:
        while (operation := self._queue.get()) is not None:
            operation.finish()
            del operation  # else this thread would hold its buffer until the next one
            self._free.release()
            self._completed.set()

    def sleep(self, seconds: float) -> None:
        """Wait until an operation is complete, or until the time is up."""
        for operation in self.unfinished:
            operation.watch()
        self.unfinished.clear()
        self._completed.wait(seconds)
        self._completed.clear()

    def end(self) -> None:
        """End the threads, whose operations must have been broken."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(5.0)


class Operation:
    """A gloo operation in progress; it keeps the buffer alive.

    Args:
        waiters: Threads that wait for it if needed.
        work: Return value of gloo.
        buffer: The buffer that is sent or received.
        has_arrived: For a receive: returns whether its last byte has arrived. Bytes arrive in
            order, so a wait then returns at once.
    """

    def __init__(
        self,
        waiters: WaiterPool,
        work: Any,
        buffer: NDArray[Any],
        has_arrived: Callable[[], bool] | None = None,
    ) -> None:
        self._waiters = waiters
        self._work = work
        self.buffer = buffer
        self._has_arrived = has_arrived
        self._complete = False
        self._watched = False
        self._error: RuntimeError | None = None

    def poll(self) -> bool:
        """Return whether it is complete, without waiting.

        Raises:
            RuntimeError: If the connection is lost.
        """
        if not self._complete and not self._watched:
            self._check()
        if self._error is not None:
            raise self._error
        return self._complete

    def poll_arrival(self) -> bool:
        """Return whether the buffer has arrived; no thread waits for it."""
        assert self._has_arrived is not None
        if not self._complete and self._has_arrived():
            self.finish()
        return self._complete and self._error is None

    def _check(self) -> None:
        if self._has_arrived is None:
            self.watch()
        elif self._has_arrived():
            self.finish()
        else:
            self._waiters.unfinished.add(self)

    def watch(self) -> None:
        """Let one thread wait for it: a second wait would never return."""
        if not self._complete and not self._watched:
            self._watched = True
            self._waiters.put(self)

    def finish(self) -> None:
        """Wait until it is complete."""
        try:
            self._work.wait(FOREVER)
        except RuntimeError as error:
            self._error = error
        self._complete = True
