"""Non-blocking collectives: requests, and the queue that completes them."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..collectives.numbers import is_number
from ..stream.convert import to_stream
from ..validation import as_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from ..transport import Transport


class Request:
    """A collective in progress. As a context manager it waits at the end.

    The input must not change until `wait` returns or `test` is true. With SPARCML_DEBUG=1
    this is checked.

    Attributes:
        is_done: Whether it has completed, with or without an error.
    """

    def __init__(self, name: str, work: Callable[[], Any], queue: RequestQueue) -> None:
        self._name = name
        self._work = work
        self._queue = queue
        self.is_done = False
        self._waited = False
        self._result: Any = None
        self._error: BaseException | None = None

    def test(self) -> bool:
        """Return whether the collective has completed, without waiting."""
        if not self.is_done:
            self._queue.charge_poll()
        return self.is_done

    def wait(self, timeout: float | None = None) -> Any:
        """Return the result of the collective, or raise its error.

        Args:
            timeout: Seconds until a TimeoutError is raised. The request continues, and
                `wait` may be called again. If a peer never answers, the request ends by
                the communicator's own timeout.
        """
        if self._waited:
            raise RuntimeError(f"wait: {self._name} has been waited for already")
        if timeout is not None:
            timeout = as_seconds("wait", "timeout", timeout)
        if not self._queue.complete(self, timeout):
            raise TimeoutError(
                f"{self._name} is not complete after {timeout:g} s; it continues, wait again"
            )
        self._waited = True
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        """Run the collective; called once, by the queue."""
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        del self._work  # frees the caller's vector
        self.is_done = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and not self._waited:
            self.wait()


class RequestQueue:
    """Completes requests one after the other, in the order of their calls.

    All ranks make the same calls in the same order, so no further agreement is needed. A
    thread completes them if the engine allows one; otherwise `wait` does.
    """

    def __init__(self, transport: Transport) -> None:
        self._requests: deque[Request] = deque()
        self._transport = transport
        self._changed = transport.condition()
        self._closing = False
        self._threaded = transport.allows_threads
        self._stopped = not self._threaded
        if self._threaded:
            transport.start(self._loop)

    def submit(self, name: str, work: Callable[[], Any]) -> Request:
        """Append a collective to the queue."""
        request = Request(name, work, self)
        with self._changed:
            if self._closing:
                raise RuntimeError(f"{name}: this communicator is closed")
            self._requests.append(request)
            self._changed.notify_all()
        return request

    def charge_poll(self) -> None:
        """Advance a virtual clock by the time of one poll."""
        self._transport.charge_poll()

    def complete(self, request: Request, timeout: float | None) -> bool:
        """Wait until the request is complete; return false if the time is up."""
        if not self._threaded:
            while not request.is_done:
                self._requests.popleft().run()
            return True
        with self._changed:
            return bool(self._changed.wait_for(lambda: request.is_done, timeout))

    def close(self) -> None:
        """Complete the outstanding requests, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        while not self._threaded and self._requests:
            self._requests.popleft().run()
        with self._changed:
            self._changed.wait_for(lambda: self._stopped)

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._requests or self._closing)
                if not self._requests:
                    self._stopped = True
                    self._changed.notify_all()
                    return
                request = self._requests.popleft()
            request.run()
            with self._changed:
                self._changed.notify_all()


def check_unchanged(name: str, x: Any, work: Callable[[], Any]) -> Callable[[], Any]:
    """Return the work; with SPARCML_DEBUG=1 it raises if x has changed meanwhile."""
    if not os.environ.get("SPARCML_DEBUG"):
        return work
    before = _checksum(x)

    def checked() -> Any:
        result = work()
        if _checksum(x) != before:
            raise RuntimeError(f"{name}: the input changed before the request completed")
        return result

    return checked


def _checksum(x: Any) -> int:
    crc = 0
    for vector in vectors_of(x):
        stream, _ = to_stream(vector)
        crc = kernels.crc32c(stream.raw_values.view(np.uint8), crc)
        if stream.raw_indices is not None:
            crc = kernels.crc32c(stream.raw_indices.view(np.uint8), crc)
    return crc


def vectors_of(x: Any) -> list[Any]:
    """Return the vectors of an argument, which may be a list; numbers do not change."""
    items = x if isinstance(x, (list, tuple)) else [x]
    return [item for item in items if item is not None and not is_number(item)]
