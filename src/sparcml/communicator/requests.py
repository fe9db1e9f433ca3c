"""Collectives that go on while the caller computes: requests, and who completes them."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..stream.convert import to_stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from ..transport import Transport


class Request:
    """A collective under way. As a context it is waited for at the end.

    What was handed in must stay unchanged until `wait` returns or `test` is true; with
    SPARCML_DEBUG=1 that is checked.
    """

    def __init__(self, name: str, work: Callable[[], Any], progress: RequestQueue) -> None:
        self._name = name
        self._work = work
        self._progress = progress
        self.is_done = False  # well or not
        self._waited = False
        self._result: Any = None
        self._error: BaseException | None = None

    def test(self) -> bool:
        """Whether it is done, well or not; never waits."""
        if not self.is_done:
            self._progress.charge_poll()
        return self.is_done

    def wait(self, timeout: float | None = None) -> Any:
        """The result, or the error that it ended in.

        Args:
            timeout: Seconds after which a TimeoutError is raised; the request goes on
                and can be waited for again. A peer that never answers ends it anyway,
                by the communicator's own timeout.
        """
        if self._waited:
            raise RuntimeError(f"wait: this {self._name} has been waited for already")
        if not self._progress.complete(self, timeout):
            raise TimeoutError(
                f"{self._name} is not done after {timeout:g} s; it goes on, wait again"
            )
        self._waited = True
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        """Do the work; called once, by whoever completes requests."""
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        del self._work  # lets go of the caller's vector
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


def unchanged(name: str, x: Any, work: Callable[[], Any]) -> Callable[[], Any]:
    """The same work; with SPARCML_DEBUG=1 it fails if x has changed meanwhile."""
    if not os.environ.get("SPARCML_DEBUG"):
        return work
    before = _checksum(x)

    def watched() -> Any:
        result = work()
        if _checksum(x) != before:
            raise RuntimeError(
                f"{name}: the vector was changed before the request was done"
            )
        return result

    return watched


def _checksum(x: Any) -> int:
    stream, _ = to_stream(x)
    crc = kernels.crc32c(stream.raw_values.view(np.uint8))
    if stream.raw_indices is not None:
        crc = kernels.crc32c(stream.raw_indices.view(np.uint8), crc)
    return crc


class RequestQueue:
    """Completes requests one after the other, in the order of their calls.

    All ranks make the same calls in the same order, so doing them in that order needs no
    further agreement. A thread does it where the engine allows one; elsewhere they are
    done inside `wait`.
    """

    def __init__(self, transport: Transport) -> None:
        self._todo: deque[Request] = deque()
        self._transport = transport
        self._changed = transport.condition()
        self._closing = False
        self._threaded = transport.allows_threads
        self._stopped = not self._threaded
        if self._threaded:
            transport.start(self._loop)

    def submit(self, name: str, work: Callable[[], Any]) -> Request:
        """Queue a piece of work."""
        request = Request(name, work, self)
        with self._changed:
            if self._closing:
                raise RuntimeError(f"{name}: this communicator is closed")
            self._todo.append(request)
            self._changed.notify_all()
        return request

    def charge_poll(self) -> None:
        """Somebody only asks."""
        self._transport.charge_poll()

    def complete(self, request: Request, timeout: float | None) -> bool:
        """Wait until it is done; false if the time is up."""
        if not self._threaded:
            while not request.is_done:
                self._todo.popleft().run()
            return True
        with self._changed:
            return bool(self._changed.wait_for(lambda: request.is_done, timeout))

    def close(self) -> None:
        """Finish what is outstanding, then end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        while not self._threaded and self._todo:
            self._todo.popleft().run()
        with self._changed:
            self._changed.wait_for(lambda: self._stopped)

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._todo or self._closing)
                if not self._todo:
                    self._stopped = True
                    self._changed.notify_all()
                    return
                request = self._todo.popleft()
            request.run()
            with self._changed:
                self._changed.notify_all()
