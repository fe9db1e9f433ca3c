"""The calls of a communicator: one at a time, numbered, counted, and failing together."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import buffer_pool
from ..collectives import Call, Shape
from ..collectives.agree import agree, quantizer_code, resolve
from ..collectives.allgather import add_all, allgather
from ..collectives.base import AGREEMENT
from ..collectives.compiled import CompiledCollectives, compile_collectives
from ..costs.workload import Workload
from ..errors import MismatchError, TransportError
from ..kernels import _core
from ..stream import Stream
from ..transport import CountingTransport, Stats, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..collectives.numbers import Number
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport.timeline import Span

T = TypeVar("T")
WATCH_SECONDS = 0.05  # between two looks at the control messages


class Session:
    """The calls of a communicator: numbered, counted, and failing on all ranks together."""

    def __init__(self, transport: Transport, stats: Stats | None = None) -> None:
        self.transport = transport
        self.stats = stats or Stats(clock=transport.now)
        self._link = CountingTransport(transport, self.stats)
        self._sequence = 0
        self._persistent: dict[str, Any] = {}  # state of collectives between calls
        self._compiled: CompiledCollectives | None = None
        self._is_compiled = False  # whether it was tried
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
            call = Call(
                self._link,
                collective,
                op,
                self._sequence,
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
        transport, before = self.transport, self.transport.operation
        transport.operation = f"{action} #{self._sequence + 1}"
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
        transport.operation = before

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

    # The compiled collectives enter and leave without a context manager, which costs as much
    # as a message.

    @property
    def compiled(self) -> CompiledCollectives | None:
        """The compiled collectives, or None if Python runs all of them."""
        if self._compiled is None and not self._is_compiled:
            self._is_compiled = True
            self._compiled = compile_collectives(self._link)
        return self._compiled

    def use_python(self) -> None:
        """Run all collectives in Python from now on, where each is defined."""
        self._is_compiled, self._compiled = True, None

    def allreduce(self, algorithm: str, op: str, x: Stream) -> Stream | None:
        """Return the result of a compiled allreduce, or None if there is none of this name."""
        compiled = self.compiled
        if compiled is None or not compiled.has(algorithm, op, x.raw_values.dtype):
            return None
        run = compiled.native if algorithm == "native" else compiled.allreduce
        return self._run(run, algorithm, op, x)

    def allreduce_quantized(
        self,
        algorithm: str,
        op: str,
        x: Stream,
        quantizer: Quantizer,
        seed: int | None,
        wants_seen: bool,
    ) -> tuple[Stream, Stream | None] | None:
        """Return a compiled result and this rank's part of it, or None if it is not compiled."""
        compiled = self.compiled
        if compiled is None or not compiled.has_quantized(algorithm, quantizer):
            return None
        run = partial(
            compiled.quantized, quantizer=quantizer, seed=seed, wants_seen=wants_seen
        )
        return self._run(run, algorithm, op, x)

    def native(self, op: str, x: Values) -> Values | None:
        """Return the result of the engine's own allreduce, or None if it is not compiled.

        The ranks agree first, and raise a MismatchError together if their arrays differ.
        """
        compiled = self.compiled
        if compiled is None or self.stats.trace is not None:  # which shows both calls
            return None
        if not compiled.has("native", op, x.dtype):
            return None
        self._enter(AGREEMENT)
        sequence = self._sequence
        try:
            result = compiled.native_array(op, sequence, x)
            if isinstance(result, list):
                stream = Stream.unchecked(x.size, None, x.reshape(-1))
                call = Call(self._link, AGREEMENT, op, sequence, Shape.of(stream))
                mismatch = resolve(call, stream, result)
        except BaseException as error:
            self._fail_compiled(error, None)
            raise
        if isinstance(result, list):
            self._leave(None)
            assert isinstance(mismatch, MismatchError)
            raise mismatch
        self._sequence = sequence + 1
        self.transport.operation = f"native #{sequence + 1}"
        self._leave(None)
        return result

    def allgather(self, name: str, op: str, x: Stream | Number) -> list[Stream | Number]:
        """Return the streams or numbers of all ranks by rank."""
        compiled = self.compiled
        if compiled is None:
            with self.call(name, op, None) as call:
                return allgather(call, x)
        return self._run(compiled.allgather, name, op, x)

    def allgather_add(self, x: Stream, out: Values) -> None:
        """Add the streams of all ranks to an array, by the messages of an allgather."""
        compiled = self.compiled
        if compiled is None:
            items: list[Stream | Number] | None = self.allgather("allgather", "sum", x)
        else:
            items = self._run(compiled.allgather_add, "allgather", "sum", (x, out))
        if items is not None:
            add_all(items, out)

    def barrier(self, name: str) -> bool:
        """Wait for all ranks in a compiled barrier; return whether there is one."""
        compiled = self.compiled
        if compiled is None:
            return False
        self._run(compiled.barrier, name, "sum", None)
        return True

    def _run(
        self, function: Callable[[str, str, int, Any], T], name: str, op: str, x: Any
    ) -> T:
        """Return the result of a compiled collective."""
        span = self._enter(name)
        if span is not None and isinstance(x, Stream):
            span.args.update(op=op, size=x.size, nnz=x.nnz)
        try:
            result = function(name, op, self._sequence, x)
        except BaseException as error:
            self._fail_compiled(error, span)
            raise
        self._leave(span)
        return result

    def agree(
        self, op: str, x: Stream, quantizer: Quantizer | None
    ) -> Workload | MismatchError:
        """Return the workload of all ranks, or the mismatch between them."""
        compiled = self.compiled
        if compiled is None:
            with self.call(AGREEMENT, op, x, quantizer) as call:
                return agree(call, x)
        span = self._enter(AGREEMENT)
        try:
            found = compiled.agree(op, self._sequence, x, quantizer_code(quantizer))
            if isinstance(found, tuple):
                nodes = self.transport.nodes
                workload: Workload | MismatchError = Workload(
                    x.blocks, x.entry_bytes, found, nodes
                )
            else:
                call = Call(
                    self._link, AGREEMENT, op, self._sequence, Shape.of(x), quantizer
                )
                workload = resolve(call, x, found)
                call.finish()
        except BaseException as error:
            self._fail_compiled(error, span)
            raise
        self._leave(span)
        return workload

    def _enter(self, name: str, detail: str = "") -> Span | None:
        self.check_open(name)
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"{name}: another thread is using this communicator; give each thread its "
                f"own with duplicate()"
            )
        self._sequence += 1
        transport = self.transport
        transport.operation = f"{name}{detail} #{self._sequence}"
        trace = self.stats.trace
        return None if trace is None else trace.begin(name, transport)

    def _leave(self, span: Span | None) -> None:
        transport = self.transport
        transport.operation = f"after {transport.operation}"
        transport.input_summary = ""
        self._end(span)

    def _fail(self, error: BaseException, span: Span | None) -> None:
        if span is not None:
            span.args["error"] = f"{type(error).__name__}: {error}"
        self.transport.abort(error)
        self._end(span)

    def _fail_compiled(self, error: BaseException, span: Span | None) -> None:
        assert self._compiled is not None
        self._compiled.abandon()
        self._fail(error, span)

    def _end(self, span: Span | None) -> None:
        if span is not None and self.stats.trace is not None:
            self.stats.trace.end(span)
        self._busy.release()
