"""One rank's end of a communicator: identity, clock, statistics and cached objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from ..observe import Stats
from ..stream.convert import vector_type
from ..validation import as_seconds
from .requests import check_unchanged, vectors_of
from .session import Session

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from ..costs import Network
    from ..transport import Transport
    from .requests import Request, RequestQueue

T = TypeVar("T")


class CommunicatorCache:
    """Objects that the layers above store with a communicator, one per type.

    Each layer defines a class of its own, so that objects are typed and no layer depends
    on another. All ranks make the same calls in the same order, so objects that are
    derived from results of collectives are the same on all ranks.
    """

    def __init__(self) -> None:
        self._objects: dict[type, Any] = {}

    def get(self, cls: type[T]) -> T:
        """Return the object of this type; the first call creates it without arguments."""
        if cls not in self._objects:
            self._objects[cls] = cls()
        cached: T = self._objects[cls]
        return cached


class Endpoint(ABC):
    """One rank's end of a group of ranks: everything but the collectives.

    Attributes:
        stats: Messages, bytes, seconds per phase, and predicted and measured seconds of
            allreduces; `stats.reset()` sets them to zero.
        cache: Objects that the layers above store with this communicator.
    """

    def __init__(
        self, transport: Transport, stats: Stats | None, network: Network | None
    ) -> None:
        self._transport = transport
        self.stats = stats or Stats(clock=transport.now)
        self.cache = CommunicatorCache()
        self._background: tuple[Any, RequestQueue] | None = (
            None  # a duplicate, and its queue
        )
        self._session = Session(transport, self.stats, network)

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return self._transport.rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._transport.size

    @property
    def engine(self) -> str:
        """Name of the engine: threads, mpi, torch, or virtual in a simulation."""
        return self._transport.engine

    def now(self) -> float:
        """Return the seconds on this rank's clock; only differences are meaningful."""
        return self._transport.now()

    def advance(self, seconds: float) -> None:
        """Advance a simulation's clock by the computing time of this rank.

        It does nothing on real ranks, where computing takes time by itself.
        """
        elapsed = self._transport.advance(as_seconds("advance", "seconds", seconds))
        if elapsed and self.stats.trace is not None:
            self.stats.trace.add_compute(self.now() - elapsed, self.now())

    def trace(self, path: str | Path | None, *, add: bool = False) -> None:
        """Write the events of all ranks to a file, for Perfetto. Collective.

        Communicators that are made from this one later are traced too. Each rank appends
        its events when it closes, or when it calls this with None, which ends the trace
        and is not collective.

        Args:
            path: The file, on a disk that all ranks share; otherwise one per machine.
            add: Whether to retain events that this program has written to the same file.
        """
        if self.stats.trace is not None:
            self.stats.trace.close(self._transport)
            self.stats.trace = None
        if path is not None:
            from ..observe.timeline import Trace  # loads json, fcntl and others

            with self._session.operation("trace"):
                self.stats.trace = Trace(self._transport, path, add=add)

    def watch(self, finished: threading.Event, action: str) -> None:
        """Wait for an event that depends on all ranks, with the errors of a collective."""
        self._session.watch(finished, action)

    def abort(self, error: BaseException) -> None:
        """Report an error to all ranks, whose waits then raise it."""
        self._transport.abort(error)

    def start(self, name: str, x: Any, work: Callable[[Any], Any]) -> Request:
        """Start a function of several collectives; `wait` returns its result. Collective.

        Args:
            name: Name of the operation, for error messages.
            x: Vectors that the function sends, which must not change meanwhile.
            work: The function, given a duplicate of this communicator.
        """
        return self._submit(name, x, work)

    @abstractmethod
    def _open_background(self) -> tuple[Any, RequestQueue]:
        """Return a duplicate of this communicator and its queue. Collective."""

    def _submit(self, name: str, x: Any, work: Callable[[Any], Any]) -> Request:
        for vector in vectors_of(x):
            vector_type(vector, name)  # raises here if it is not a vector, not in `wait`
        if self._background is None:
            self._background = self._open_background()
        comm, queue = self._background
        return queue.submit(name, check_unchanged(name, x, lambda: work(comm)))

    def _submit_internal(self, name: str, work: Callable[[Any], Any]) -> None:
        """Run a function on the duplicate, in its order among the requests."""
        if self._background is not None:
            comm, queue = self._background
            queue.submit(name, lambda: work(comm))

    def close(self) -> None:
        """Complete outstanding requests and free the engine's resources."""
        if self._background is not None and not self._transport.is_forked:
            comm, queue = self._background
            queue.close()
            comm.close()
        try:
            if self.stats.trace is not None:
                self.stats.trace.close(self._transport)
        finally:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ends_well = isinstance(error, SystemExit) and error.code in (None, 0)
        if error is not None and not ends_well:
            self._transport.abort(error)
        self.close()
