"""The calls of a communicator: one at a time, numbered, counted, and failing together."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import buffer_pool
from ..collectives import Call, Shape
from ..errors import TransportError
from ..kernels import _core
from ..observe import CountingTransport, Stats
from ..transport.base import PHYSICAL_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..observe.timeline import Span
    from ..quantize import Quantizer
    from ..stream import Stream
    from ..transport import Transport

WATCH_SECONDS = 0.05  # between two looks at the control messages


class CallSequence:
    """The calls of a communicator: numbered, counted, and failing on all ranks together."""

    def __init__(self, transport: Transport, stats: Stats | None = None) -> None:
        self.transport = transport
        self.stats = stats or Stats(clock=transport.now)
        self._link = CountingTransport(transport, self.stats)
        self._state = _core.CallState()  # the number and name of the current call
        self._persistent: dict[str, Any] = {}  # state of collectives between calls
        self._busy = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Free the engine's resources and unused memory; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self.transport.close()
            if not self.transport.siblings:
                buffer_pool.DEFAULT_POOL.release()
                _core.release_messages()

    def reset(self) -> None:
        """Discard the state that collectives keep between calls."""
        self._persistent.clear()

    @contextmanager
    def call(
        self,
        collective: str,
        op: str,
        x: Stream | None,
        quantizer: Quantizer | None = None,
        seed: int | None = None,
        detail: str = "",
    ) -> Iterator[Call]:
        """Enter a collective to which all ranks contribute a vector like x, if given.

        Ranks that wait in calls with different details are in different calls. A detail has
        no comma.
        """
        with self.operation(collective, detail) as span:
            if span is not None and x is not None:
                span.args.update(op=op, size=x.size, nnz=x.nnz)
            shape = None if x is None else Shape.of(x)
            encoding = "" if quantizer is None else f", {quantizer}"
            summary = "" if shape is None else f"{shape}, {op}{encoding}"
            self.transport.input_summary = summary
            if shape is not None:
                self.transport.longest_message = shape.longest_message(self.transport.size)
            call = Call(
                self._link,
                collective,
                op,
                self._state.sequence,
                shape,
                quantizer,
                self._persistent,
                seed,
            )
            yield call
            call.finish()

    def check_open(self, name: str) -> None:
        """Raise if the communicator is closed or has failed."""
        if self.transport.is_forked:
            raise TransportError(
                f"{name}: this process was forked from a rank and is not a rank itself; "
                f"call it in the process that opened the communicator"
            )
        failure = self.transport.control.failure
        if self._closed or failure is not None:
            why = f" after: {failure}" if failure is not None else ""
            raise TransportError(f"{name}: this communicator is closed{why}")

    def watch(self, finished: threading.Event, action: str) -> None:
        """Wait for an event of all ranks between two calls, see `Endpoint.watch`."""
        transport = self.transport
        transport.operation = f"{action} #{self._state.sequence + 1}"
        try:
            transport.wait_for(
                finished.is_set,
                (transport.rank + 1) % transport.size,
                "wait for all ranks",
                lambda _: finished.wait(WATCH_SECONDS),
            )
        except BaseException as error:
            transport.abort(error)
            raise
        transport.operation = self._state

    @contextmanager
    def operation(self, name: str, detail: str = "") -> Iterator[Span | None]:
        """Enter a call; an error in it is reported to all ranks."""
        span = self._enter(name, detail)
        try:
            self.transport.control.check()
            yield span
        except BaseException as error:
            self._fail(error, span)
            raise
        self._leave(span)

    def _enter(self, name: str, detail: str = "") -> Span | None:
        self.check_open(name)
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"{name}: another thread is using this communicator; give each thread its "
                f"own with duplicate()"
            )
        self._state.begin(name + detail)
        transport = self.transport
        transport.operation = self._state
        trace = self.stats.trace
        return None if trace is None else trace.begin(name, transport)

    def _leave(self, span: Span | None) -> None:
        transport = self.transport
        self._state.end()
        transport.operation = self._state
        transport.input_summary = ""
        transport.longest_message = PHYSICAL_MEMORY
        self._end(span)

    def _fail(self, error: BaseException, span: Span | None) -> None:
        if span is not None:
            span.args["error"] = f"{type(error).__name__}: {error}"
        self.transport.abort(error)
        self._end(span)

    def _end(self, span: Span | None) -> None:
        if span is not None and self.stats.trace is not None:
            self.stats.trace.end(span)
        self._busy.release()
