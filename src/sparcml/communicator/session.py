"""One call after the other on one transport: numbered, counted, and failing together."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from .. import buffer_pool
from ..collectives import Call, Shape
from ..errors import TransportError
from ..transport import CountingTransport, Stats, Transport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..quantize import Quantizer
    from ..stream import Stream
    from ..transport.timeline import Span

T = TypeVar("T")


class CommunicatorCache:
    """Objects that the layers above keep with a communicator, one per type.

    Each layer defines a class of its own, so that the objects are typed and no layer
    depends on another. All ranks make the same calls in the same order, so entries that
    are derived from collective results are the same on all ranks.
    """

    def __init__(self) -> None:
        self._objects: dict[type, Any] = {}

    def get(self, cls: type[T]) -> T:
        """Return the object of this type; the first call creates it without arguments."""
        if cls not in self._objects:
            self._objects[cls] = cls()
        cached: T = self._objects[cls]
        return cached


class Session:
    """What all calls of a communicator share."""

    def __init__(self, transport: Transport, stats: Stats | None = None) -> None:
        self.transport = transport
        self.stats = stats or Stats(clock=transport.now)
        self._link = CountingTransport(transport, self.stats)
        self._sequence = 0
        self._persistent: dict[str, Any] = {}  # what collectives keep from call to call
        self._busy = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Give the engine's resources and unused memory back; only once."""
        if not self._closed:
            self._closed = True
            self.transport.close()
            if not self.transport.siblings:  # the last of its kind
                buffer_pool.DEFAULT_POOL.release()

    @contextmanager
    def call(
        self,
        collective: str,
        op: str,
        x: Stream | None,
        quantizer: Quantizer | None = None,
        seed: int | None = None,
    ) -> Iterator[Call]:
        """A collective in which all ranks bring a vector like x, if one is given."""
        with self.operation(collective) as span:
            if span is not None and x is not None:
                span.args.update(op=op, size=x.size, nnz=x.nnz)
            shape = None if x is None else Shape.of(x)
            coding = "" if quantizer is None else f", {quantizer}"
            self.transport.input_summary = "" if shape is None else f"{shape}, {op}{coding}"
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
            self.transport.input_summary = ""

    def check_open(self, name: str) -> None:
        """Raise if there is nobody to talk to any more."""
        failure = self.transport.control.failure
        if self._closed or failure is not None:
            why = f" after: {failure}" if failure is not None else ""
            raise TransportError(f"{name}: this communicator is closed{why}")

    @contextmanager
    def operation(self, name: str) -> Iterator[Span | None]:
        """One call at a time; whatever goes wrong in it, all ranks hear of it."""
        self.check_open(name)
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"{name}: another thread is using this communicator; give each thread its "
                f"own with duplicate()"
            )
        self._sequence += 1
        self.transport.operation = f"{name} #{self._sequence}"
        trace = self.stats.trace
        span = None if trace is None else trace.begin(name, self.transport)
        try:
            self.transport.control.check()
            yield span
            self.transport.operation = f"after {name} #{self._sequence}"
        except BaseException as error:
            if span is not None:
                span.args["error"] = f"{type(error).__name__}: {error}"
            self.transport.abort(error)
            raise
        finally:
            if trace is not None and span is not None:
                trace.end(span)
            self._busy.release()
