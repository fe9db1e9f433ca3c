"""What a user holds: a rank among ranks, and the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import wire
from .collectives import ALLREDUCES, Network, Problem
from .collectives.agree import agree
from .collectives.allgather import allgather
from .collectives.auto import Explanation, choose, explain
from .collectives.broadcast import broadcast_message
from .collectives.reduce import reduce
from .collectives.split_reduce import collect
from .errors import MismatchError
from .request import Progress, unchanged
from .session import Session
from .stream import MEAN, OPS, Stream, neutral, switch
from .stream.add import refill
from .stream.convert import KINDS, as_kind, kind_of, opened
from .transport import Stats, Transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from .request import Request

ENGINE_CHECKS_NOTHING = "native"  # no header of ours travels, so ranks agree beforehand


class Communicator:
    """One rank's place among `size` ranks.

    All ranks make the same calls in the same order. Vectors go in as a `Stream`, a NumPy
    array, a torch tensor or a scipy sparse row, and come back as the same kind; results
    are read-only. Used as a context it closes itself.

    Attributes:
        stats: Messages, bytes and seconds per phase; `stats.reset()` starts anew.
    """

    def __init__(
        self,
        transport: Transport,
        network: Network | None = None,
        stats: Stats | None = None,
    ) -> None:
        self._transport = transport
        self._network = network or Network()
        self.stats = stats or Stats()
        self._session = Session(transport, self.stats)
        self._background: tuple[Communicator, Progress] | None = None

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
        """What carries the bytes: threads or mpi."""
        return self._transport.engine

    def __repr__(self) -> str:
        return f"Communicator(rank={self.rank}, size={self.size}, engine={self.engine})"

    def allreduce(self, x: Any, op: str = "sum", algorithm: str = "auto") -> Any:
        """Reduce over all ranks; every rank gets the result, with the same bits.

        Args:
            x: This rank's vector. What a stream does not store counts as the neutral
                element of the operation.
            op: sum, mean, min, max or prod.
            algorithm: A name from `docs/algorithms.md`, or auto: the cheapest by their
                declared costs, after a small exchange that also finds mismatches.

        Returns:
            The same kind of thing as x, read-only.

        Raises:
            MismatchError: If ranks differ in size, dtype, op, algorithm or call order.
            TransportError: If a rank has raised, stalled or gone.
        """
        _check_choices(op, algorithm)
        reduction = _plain(op)
        stream, back = _opened_for(x, reduction)
        if self.size == 1:
            with self._session.operation("allreduce"):
                return back(_copied_if_alone(stream, 1))
        if algorithm in ("auto", ENGINE_CHECKS_NOTHING):
            problem = self._agree(stream, reduction)
            if algorithm == "auto":
                algorithm = choose(problem, self._network, ALLREDUCES)
        with self._session.call(algorithm, reduction, stream) as call:
            total = ALLREDUCES[algorithm].run(call, stream)
        return back(_finished(total, op, self.size))

    def iallreduce(self, x: Any, op: str = "sum", algorithm: str = "auto") -> Request:
        """Start an allreduce and go on; `wait` gives its result.

        Any number may be outstanding. They are completed in the order of their calls by
        a thread of their own, on a duplicate of this communicator (made by the first such
        call, which therefore waits for all ranks).
        """
        _check_choices(op, algorithm)
        return self._submit("iallreduce", x, lambda c: c.allreduce(x, op, algorithm))

    def iallgather(self, x: Any) -> Request:
        """Start an allgather and go on; `wait` gives the list."""
        return self._submit("iallgather", x, lambda c: c.allgather(x))

    def ireduce_scatter(self, x: Any, op: str = "sum") -> Request:
        """Start a reduce_scatter and go on; `wait` gives this rank's range."""
        _check_choices(op, "auto")
        return self._submit("ireduce_scatter", x, lambda c: c.reduce_scatter(x, op))

    def _submit(self, name: str, x: Any, work: Callable[[Communicator], Any]) -> Request:
        kind_of(x)  # refuse what is no vector here, not at `wait`
        if self._background is None:
            with self._session.operation("duplicate"):
                transport = self._transport.duplicate()
            helper = Communicator(transport, self._network, self.stats)
            self._background = helper, Progress(transport)
        helper, progress = self._background
        return progress.submit(name, unchanged(name, x, lambda: work(helper)))

    def explain(self, x: Any, op: str = "sum") -> Explanation:
        """What `auto` would choose for x, and what each algorithm would cost.

        A collective call: all ranks make it.
        """
        _check_choices(op, "auto")
        stream, _ = _opened_for(x, _plain(op))
        problem = self._agree(stream, _plain(op))
        return explain(problem, self._network, ALLREDUCES)

    def _agree(self, stream: Stream, op: str) -> Problem:
        with self._session.call("agree", op, stream) as call:
            problem = agree(call, stream)
        if isinstance(problem, MismatchError):
            raise problem  # all ranks found it, and nothing is under way: still usable
        return problem

    def reduce(self, x: Any, root: int = 0, op: str = "sum") -> Any:
        """Reduce over all ranks; the root gets the result, the others None."""
        _check_root("reduce", root, self.size)
        _check_choices(op, "auto")
        stream, back = _opened_for(x, _plain(op))
        with self._session.call("reduce", _plain(op), stream) as call:
            total = reduce(call, _copied_if_alone(stream, self.size), root)
        return None if total is None else back(_finished(total, op, self.size))

    def reduce_scatter(self, x: Any, op: str = "sum") -> Any:
        """Reduce over all ranks; rank r gets range r of the result.

        Range r goes from r N // P to (r + 1) N // P, in blocks.
        """
        _check_choices(op, "auto")
        stream, back = _opened_for(x, _plain(op))
        with self._session.call("reduce_scatter", _plain(op), stream) as call:
            parts = collect(call, _copied_if_alone(stream, self.size))
            total = call.add_many(parts)
        return back(_finished(total, op, self.size))

    def allgather(self, x: Any) -> list[Any]:
        """Every rank's vector, in the order of ranks; they may differ in size."""
        stream, back = opened(x)
        stream = switch(stream)
        with self._session.call("allgather", "sum", None) as call:
            return [back(s) for s in allgather(call, stream)]

    def broadcast(self, x: Any = None, root: int = 0) -> Any:
        """The root's vector on every rank.

        Elsewhere x may be None, or a vector that must then have the same shape.
        """
        _check_root("broadcast", root, self.size)
        if x is None and self.rank == root:
            raise ValueError("broadcast: the root must give a vector, got None")
        stream, back = (None, None) if x is None else opened(x)
        with self._session.call("broadcast", "sum", stream) as call:
            mine = None
            if self.rank == root and stream is not None:
                mine, _ = call.encode(switch(stream), KINDS.index(kind_of(x)))
            message = broadcast_message(call, mine, root)
            kind = wire.Header.read(message).tag.round
            result = call.decode(message, root, kind)
        return back(result) if back else as_kind(result, KINDS[kind])

    def barrier(self) -> None:
        """No rank goes on before all have come."""
        with self._session.operation("barrier"):
            self._transport.barrier()

    def duplicate(self) -> Communicator:
        """The same ranks with channels of their own, for another part of a program."""
        with self._session.operation("duplicate"):
            return Communicator(self._transport.duplicate(), self._network)

    def split(self, color: int, key: int = 0) -> Communicator:
        """A communicator of the ranks with the same color, ordered by key, then rank."""
        mine = np.array([color, key], np.float64)
        everyone = [a.astype(np.int64) for a in self.allgather(mine)]
        same = [r for r in range(self.size) if everyone[r][0] == color]
        members = sorted(same, key=lambda r: (everyone[r][1], r))
        with self._session.operation("split"):
            return Communicator(self._transport.split(members), self._network)

    def close(self) -> None:
        """Give the engine's resources back; a second time does nothing."""
        if self._background is not None:
            helper, progress = self._background
            progress.close()
            helper.close()
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


def _check_choices(op: str, algorithm: str) -> None:
    for what, got, known in (
        ("op", op, (*OPS, MEAN)),
        ("algorithm", algorithm, ("auto", *ALLREDUCES)),
    ):
        if got not in known:
            names = ", ".join(known)
            raise ValueError(f"allreduce: {what} must be one of {names}, got {got!r}")


def _opened_for(x: Any, op: str) -> tuple[Stream, Callable[[Stream], Any]]:
    """The caller's vector, ready for the operation."""
    fill = neutral(op)
    stream, back = opened(x, fill)
    if not stream.is_dense and stream.fill not in (0.0, fill):
        raise ValueError(
            f"allreduce: what this stream does not store counts as {stream.fill}, which "
            f"{op} cannot use; make it dense with Stream.from_dense(x.to_dense())"
        )
    return switch(refill(stream, fill)), back


def _plain(op: str) -> str:
    """The operation that is carried out: a mean is a sum, divided at the end."""
    return "sum" if op == MEAN else op


def _check_root(name: str, root: int, size: int) -> None:
    if not 0 <= root < size:
        raise ValueError(f"{name}: root must be in [0, {size}), got {root}")


def _copied_if_alone(x: Stream, ranks: int) -> Stream:
    """A single rank's result must not change with its input: nothing else copies it."""
    if ranks > 1:
        return x
    values = x.raw_values.copy()
    values[np.isnan(values)] = np.nan  # the canonical one, as in every other result
    indices = None if x.raw_indices is None else x.raw_indices.copy()
    return Stream.trusted(x.size, indices, values, x.block, x.fill)


def _finished(x: Stream, op: str, ranks: int) -> Stream:
    """The result, divided if a mean was asked for."""
    if op != MEAN:
        return x
    values = x.raw_values / x.dtype.type(ranks)
    return Stream.trusted(x.size, x.raw_indices, values, x.block, x.fill)
