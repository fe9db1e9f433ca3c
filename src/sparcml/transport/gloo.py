"""A gloo group of our own, in which operations can be polled and connections cut.

gloo has no test for completion: a send or receive is done when a blocking wait returns,
and a wait that runs out of time breaks every connection of the group. So other threads
wait for us, without an end; and when we have had enough, we break the group ourselves,
which wakes them. While they wait this thread may post more: gloo locks what it shares.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

FOREVER = timedelta(days=365)
AT_ONCE = timedelta(milliseconds=1)
SEVER, PROBE = 1000, 1001  # tags on which nothing is ever sent

OPS = {
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "prod": dist.ReduceOp.PRODUCT,
}


class Waiters:
    """Threads that wait for operations, one each."""

    def __init__(self) -> None:
        self.missed: set[Job] = set()  # what was looked for and has not arrived
        self._news = threading.Event()
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def put(self, job: Job) -> None:
        """Have a thread wait for it."""
        if not self._free.acquire(blocking=False):
            thread = threading.Thread(target=self._body, name="gloo wait", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put(job)

    def _body(self) -> None:
        while (job := self._queue.get()) is not None:
            job.finish()
            del job  # or this thread would hold its buffer until the next one comes
            self._free.release()
            self._news.set()

    def sleep(self, seconds: float) -> None:
        """Until one of them has ended, or what was missed has arrived, or time is up."""
        for job in self.missed:
            job.watch()
        self.missed.clear()
        self._news.wait(seconds)
        self._news.clear()

    def end(self) -> None:
        """End the threads; whatever they wait for has been broken."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(5.0)


class Job:
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
        waiters: Waiters,
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


class Mesh:
    """This rank's connections to all others."""

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self._peers = [peer for peer in range(size) if peer != rank]
        self.waiters = Waiters()
        limit = timedelta(seconds=timeout)
        self._group = dist.ProcessGroupGloo(store, rank, size, limit)

    def send(self, peer: int, array: Bytes, tag: int) -> Job:
        """Start sending; done when the peer has begun to receive and all is on its way."""
        work = self._group.send([_tensor(array)], peer, tag)
        return Job(self.waiters, work, array)

    def receive(self, peer: int, array: Bytes, tag: int, last: int) -> Job:
        """Start receiving as many bytes as the array has, of which `last` ends them."""
        array[-1] = last ^ 0xFF
        work = self._group.recv([_tensor(array)], peer, tag)
        return Job(self.waiters, work, array, lambda: bool(array[-1] == last))

    def allreduce(self, array: NDArray[Any], op: str) -> Job:
        """Start gloo's own allreduce, in place."""
        options = dist.AllreduceOptions()
        options.reduceOp = OPS[op]
        options.timeout = FOREVER
        return Job(self.waiters, self._group.allreduce([_tensor(array)], options), array)

    def dead(self) -> list[int]:
        """The peers whose connection is closed: nothing can be posted there."""
        found = []
        for peer in self._peers:
            try:
                self._group.recv([torch.empty(1, dtype=torch.uint8)], peer, PROBE)
            except RuntimeError:
                found.append(peer)
        return found

    def close(self) -> None:
        """Break all connections, so that every wait ends, here and at the peers."""
        for peer in self._peers:
            with contextlib.suppress(RuntimeError):
                # The first one to run out of time closes them all.
                nothing = [torch.empty(1, dtype=torch.uint8)]
                self._group.recv(nothing, peer, SEVER).wait(AT_ONCE)
        self.waiters.end()
        del self._group


class _Writable:
    """An array's memory as torch wants it: it takes read-only ones with a warning only."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(
        array if array.flags.writeable else np.asarray(_Writable(array))
    )
