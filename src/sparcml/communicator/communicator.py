"""What a user holds: a rank among ranks, and the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..collectives import ALLREDUCES, Network
from ..collectives.allgather import allgather
from ..collectives.barrier import barrier
from ..collectives.broadcast import broadcast
from ..collectives.reduce import reduce
from ..collectives.split_reduce import collect
from ..stream import densify_if_smaller, join
from ..stream.convert import VECTOR_TYPES, as_vector_type, to_stream, vector_type
from ..transport import Stats, Transport
from .arguments import (
    check_reduction,
    check_root,
    copied_if_alone,
    finished,
    into,
    plain,
    to_stream_for,
    whole,
)
from .background import Background
from .requests import RequestQueue
from .selection import AlgorithmSelector
from .session import CommunicatorCache, Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Protocol, Self

    from ..quantize import Quantizer
    from .auto import Explanation

    class Measured(Protocol):
        """What a probe has found."""

        def named(self) -> Network:
            """The network, saying where it comes from."""


class Communicator(Background):
    """One rank's place among `size` ranks.

    All ranks make the same calls in the same order. Vectors go in as a `Stream`, a NumPy
    array, a torch tensor or a scipy sparse row, and come back as the same kind; results
    are read-only. Used as a context it closes itself.

    Attributes:
        stats: Messages, bytes and seconds per phase, and of allreduces the seconds that
            were predicted and measured by algorithm; `stats.reset()` starts anew.
        cache: Objects that the layers above keep with these ranks, one per type.
    """

    def __init__(
        self,
        transport: Transport,
        network: Network | None = None,
        stats: Stats | None = None,
        measure: Callable[[Transport], Measured] | None = None,
    ) -> None:
        self._transport = transport
        self._measure = measure
        self.stats = stats or Stats(clock=transport.now)
        self._session = Session(transport, self.stats)
        self._selector = AlgorithmSelector(self._session, network or Network())
        self.cache = CommunicatorCache()

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
        """What carries the bytes: threads, mpi, torch, or virtual in a simulation."""
        return self._transport.engine

    @property
    def network(self) -> Network:
        """What messages, bytes and entries are reckoned to cost; its `origin` says why.

        The same on all ranks, and it stays the same unless all call `recalibrate`.
        """
        return self._selector.network

    def recalibrate(
        self, measure: Callable[[Transport], Measured] | None = None
    ) -> Network:
        """Measure the network and this machine, and choose by that from here on.

        A collective call: all ranks make it, best while nothing else is under way. It
        takes up to a minute. A communicator that was made from this one keeps its network.
        `sparcml probe` measures the same for later jobs.

        Args:
            measure: Another way to measure; it gives the same on all ranks.
        """
        measure = measure or self._measure
        if measure is not None and self.size > 1:
            with self._session.operation("recalibrate"):
                found = measure(self._transport)
            self._set_network(found.named())
        return self.network

    def _set_network(self, network: Network) -> None:
        self._selector.set_network(network)
        self._tell_helper("recalibrate", lambda helper: helper._set_network(network))

    def __repr__(self) -> str:
        return f"Communicator(rank={self.rank}, size={self.size}, engine={self.engine})"

    def allreduce(
        self,
        x: Any,
        op: str = "sum",
        algorithm: str = "auto",
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
        out: Any = None,
        seed: int | None = None,
    ) -> Any:
        """Reduce over all ranks; every rank gets the result, with the same bits.

        Args:
            x: This rank's vector. What a stream does not store counts as the neutral
                element of the operation.
            op: sum, mean, min, max or prod.
            algorithm: A name from `docs/algorithms.md`, or auto: the cheapest by their
                declared costs. For that ranks exchange what they bring, in the first of
                32 calls of a kind, and whenever results become half or twice as large.
                All but oktopk, which auto never takes, lose nothing.
            quantize: Codes values on the wire, in the split algorithms only: each value
                at most twice, by its sender and by the owner of its range.
            return_seen: Also return this rank's part of the result, as the others saw it:
                all ranks' parts add up to the result, to rounding. Error feedback keeps
                the rest.
            out: A NumPy array or torch tensor that takes the result, of x's size and
                dtype. It may be x itself, but must not overlap it otherwise.
            seed: Decides what is random in the quantizer, the same on all ranks; every call
                draws anew by default.

        Returns:
            The same kind of thing as x, read-only; `out` if it is given. With
            return_seen, a pair.

        Raises:
            MismatchError: If ranks differ in size, dtype, op, algorithm or call order.
            TransportError: If a rank has raised, stalled or gone.
        """
        check_reduction(op, algorithm, quantize, return_seen=return_seen)
        self._session.check_open("allreduce")
        stream, restore_seen = to_stream_for(x, plain(op))
        restore = (
            restore_seen if out is None else into(out, stream)
        )  # out takes the result alone
        if self.size == 1:
            with self._session.operation("allreduce"):
                total = copied_if_alone(stream, 1)
            return (restore(total), restore_seen(total)) if return_seen else restore(total)
        algorithm, kind = self._selector.select(algorithm, stream, op, quantize)
        start = self.now()
        with self._session.call(algorithm, op, stream, quantize, seed) as call:
            call.wants_seen = return_seen
            total = ALLREDUCES[algorithm].run(call, stream)
        seconds = self.now() - start
        self._selector.record(algorithm, kind, stream, quantize, total, seconds)
        if not return_seen:
            return restore(finished(total, op, self.size))
        # Before the result goes to `out`, which may be x itself.
        if quantize is not None or ALLREDUCES[algorithm].lossy:
            seen = join(call.seen, call.edges)
        else:
            seen = copied_if_alone(stream, 1)
        part = restore_seen(finished(seen, op, self.size))
        return restore(finished(total, op, self.size)), part

    def explain(
        self, x: Any, op: str = "sum", quantize: Quantizer | None = None
    ) -> Explanation:
        """What `auto` would choose for x, and what each algorithm would cost.

        A collective call: all ranks make it.
        """
        check_reduction(op, quantize=quantize)
        stream, _ = to_stream_for(x, plain(op))
        return self._selector.explain(stream, op, quantize)

    def reduce(self, x: Any, root: int = 0, op: str = "sum") -> Any:
        """Reduce over all ranks; the root gets the result, the others None."""
        check_root("reduce", root, self.size)
        check_reduction(op)
        stream, restore = to_stream_for(x, plain(op))
        with self._session.call("reduce", op, stream) as call:
            total = reduce(call, copied_if_alone(stream, self.size), root)
        return None if total is None else restore(finished(total, op, self.size))

    def reduce_scatter(self, x: Any, op: str = "sum") -> Any:
        """Reduce over all ranks; rank r gets range r of the result.

        Range r goes from r N // P to (r + 1) N // P, in blocks.
        """
        check_reduction(op)
        stream, restore = to_stream_for(x, plain(op))
        with self._session.call("reduce_scatter", op, stream) as call:
            parts = collect(call, copied_if_alone(stream, self.size))
            total = call.add_many(parts)
        return restore(finished(total, op, self.size))

    def allgather(self, x: Any) -> list[Any]:
        """Every rank's vector, in the order of ranks; they may differ in size."""
        stream, restore = to_stream(x, bitwise=True)
        stream = densify_if_smaller(stream)
        with self._session.call("allgather", "sum", None) as call:
            return [restore(s) for s in allgather(call, stream)]

    def broadcast(self, x: Any = None, root: int = 0) -> Any:
        """The root's vector on every rank.

        Elsewhere x may be None, or a vector that must then have the same shape.
        """
        check_root("broadcast", root, self.size)
        if x is None and self.rank == root:
            raise ValueError("broadcast: the root must give a vector, got None")
        stream, restore = (None, None) if x is None else to_stream(x, bitwise=True)
        with self._session.call("broadcast", "sum", stream) as call:
            mine, kind = None, 0
            if self.rank == root and stream is not None:
                mine, kind = densify_if_smaller(stream), VECTOR_TYPES.index(vector_type(x))
            result, kind = broadcast(call, mine, kind, len(VECTOR_TYPES), root)
        return restore(result) if restore else as_vector_type(result, VECTOR_TYPES[kind])

    def barrier(self) -> None:
        """No rank goes on before all have come."""
        with self._session.call("barrier", "sum", None) as call:
            barrier(call)

    def now(self) -> float:
        """Seconds on this rank's clock; only differences mean something."""
        return self._transport.now()

    def advance(self, seconds: float) -> None:
        """Say that this rank computes for so long: in a simulation that time passes.

        It does nothing on real ranks, where computing takes time by itself.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"advance: seconds must be finite and >= 0, got {seconds!r}")
        passed = self._transport.advance(seconds)
        if passed and self.stats.trace is not None:
            self.stats.trace.add_compute(self.now() - passed, self.now())

    def trace(self, path: str | Path | None, *, add: bool = False) -> None:
        """Keep what every rank does from here on in one file, for Perfetto.

        A collective call: all ranks make it. Communicators made from this one later are
        in the trace too. Each rank adds its events when it closes, or with a path of
        None, which ends the trace (each rank by itself).

        Args:
            path: The file, on a disk that all ranks share; otherwise one a machine.
            add: Whether to keep what this program has traced to the same file before.
        """
        if self.stats.trace is not None:
            self.stats.trace.close(self._transport)
            self.stats.trace = None
        if path is not None:
            from ..transport.trace import Trace  # JSON, locks and the like: when wanted

            with self._session.operation("trace"):
                self.stats.trace = Trace(self._transport, path, add=add)

    def duplicate(self) -> Communicator:
        """The same ranks with channels of their own, for another part of a program."""
        self.barrier()
        with self._session.operation("duplicate"):
            return self._child(self._transport.duplicate())

    def split(self, color: int, key: int = 0) -> Communicator:
        """A communicator of the ranks with the same color, ordered by key, then rank."""
        color, key = whole("split: color", color), whole("split: key", key)
        mine = np.array([color, key], np.float64)
        everyone = [a.astype(np.int64) for a in self.allgather(mine)]
        same = [r for r in range(self.size) if everyone[r][0] == color]
        members = sorted(same, key=lambda r: (everyone[r][1], r))
        with self._session.operation("split"):
            return self._child(self._transport.split(members))

    def _child(self, transport: Transport) -> Communicator:
        stats = Stats(trace=self.stats.trace, clock=transport.now)
        return Communicator(transport, self.network, stats, self._measure)

    def _open_helper(self) -> tuple[Communicator, RequestQueue]:
        self.barrier()
        with self._session.operation("duplicate"):
            transport = self._transport.duplicate()
        helper = Communicator(transport, self.network, self.stats, self._measure)
        return helper, RequestQueue(transport)

    def abort(self, error: BaseException) -> None:
        """Tell all ranks that this one cannot go on, and why: their waits raise."""
        self._transport.abort(error)

    def close(self) -> None:
        """Give the engine's resources back; a second time does nothing."""
        self._close_helper()
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
        if error is not None:
            self._transport.abort(error)
        self.close()
