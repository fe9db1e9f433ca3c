"""A separate gloo group: connections to all other ranks, which can be broken.

gloo has no test for completion: a send or receive is complete when a blocking wait
returns, and a wait that times out breaks every connection of the group. Therefore other
threads wait without a timeout. To give up, this process breaks the group, which wakes
them. Meanwhile this thread may post more operations: gloo locks its shared state.
"""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import timedelta
from functools import cache
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
BREAK_TIMEOUT = timedelta(milliseconds=1)
BREAK, PROBE = 1000, 1001  # tags on which nothing is ever sent

OPS = {
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "prod": dist.ReduceOp.PRODUCT,
}


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


class Mesh:
    """This rank's connections to all other ranks: two per peer, one per direction.

    On one connection for both directions, two peers often exchange long messages one
    after the other: 10 MB each way at 1 Gbit/s took 85 ms or 165 ms.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self._rank = rank
        self._peers = [peer for peer in range(size) if peer != rank]
        self.waiters = WaiterPool()
        options = dist.ProcessGroupGloo._Options()
        options._devices = _devices()
        options._threads = 2  # of gloo, for its own collectives
        options._timeout = timedelta(seconds=timeout)
        self._to_higher, self._to_lower = (
            dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, options)
            for name in ("up", "down")
        )

    def _sending(self, peer: int) -> Any:
        """Return the group on which this rank sends to a peer."""
        return self._to_higher if peer > self._rank else self._to_lower

    def _receiving(self, peer: int) -> Any:
        """Return the group on which this rank receives from a peer."""
        return self._to_higher if peer < self._rank else self._to_lower

    def send(self, peer: int, array: Bytes, tag: int) -> Operation:
        """Start a send; it is complete when the peer receives and all bytes have left."""
        work = self._sending(peer).send([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array)

    def receive(
        self, peer: int, array: Bytes, tag: int, has_arrived: Callable[[], bool]
    ) -> Operation:
        """Start a receive of at most the array's size, see `Operation`."""
        work = self._receiving(peer).recv([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array, has_arrived)

    def allreduce(self, array: NDArray[Any], op: str) -> Operation:
        """Start gloo's own allreduce, in place."""
        options = dist.AllreduceOptions()
        options.reduceOp = OPS[op]
        options.timeout = FOREVER
        work = self._to_higher.allreduce([_tensor(array)], options)
        return Operation(self.waiters, work, array)

    def lost_peers(self) -> list[int]:
        """Return the peers whose connection is closed: nothing can be posted there."""
        lost = []
        for peer in self._peers:
            try:
                buffer = [torch.empty(1, dtype=torch.uint8)]
                self._receiving(peer).recv(buffer, peer, PROBE)
            except RuntimeError:
                lost.append(peer)
        return lost

    def close(self) -> None:
        """Break all connections, so that every wait ends, here and at the peers."""
        for group in (self._to_higher, self._to_lower):
            for peer in self._peers:
                with contextlib.suppress(RuntimeError):
                    # The first timeout closes all connections of the group.
                    buffer = [torch.empty(1, dtype=torch.uint8)]
                    group.recv(buffer, peer, BREAK).wait(BREAK_TIMEOUT)
        self.waiters.end()
        del self._to_higher, self._to_lower, group


@cache
def _devices() -> list[Any]:
    """Return the network interfaces, opened once: gloo never frees a broken device."""
    make = dist.ProcessGroupGloo.create_device
    names = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")
    chosen = [make(interface=name) for name in names if name]
    return chosen or [dist.ProcessGroupGloo.create_default_device()]


class _Writable:
    """An array's memory, marked writable: torch warns of read-only arrays."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(
        array if array.flags.writeable else np.asarray(_Writable(array))
    )
