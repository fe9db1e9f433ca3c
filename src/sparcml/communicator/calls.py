"""All collectives but allreduce, and the non-blocking forms: arguments, call and result of each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, overload

from ..collectives.agree import agree_on_root
from ..collectives.alltoall import alltoall
from ..collectives.broadcast import broadcast
from ..collectives.checks import Shape
from ..collectives.numbers import as_number, fold, is_number
from ..collectives.reduce import reduce
from ..collectives.split import scatter_ranges
from ..stream import Stream, densify_if_smaller, range_offsets
from ..stream.convert import VECTOR_TYPES, as_vector_type, to_stream, vector_type
from .arguments import (
    check_integers,
    check_number,
    check_out,
    check_reduction,
    check_root,
    check_vectors,
    copy_if_single,
    divide_if_mean,
    reduction_of,
    to_item,
    to_operand,
    write_to,
)
from .endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..collectives.numbers import Number
    from ..costs import Network
    from ..observe import Stats
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport import Transport
    from .requests import Request

CONTAINERS = (*VECTOR_TYPES, "number")  # the position is sent in a broadcast


class Calls(Endpoint):
    """Collectives; `out` is a NumPy array or a CPU tensor for the result."""

    def __init__(
        self, transport: Transport, stats: Stats | None, network: Network | None
    ) -> None:
        super().__init__(transport, stats, network)
        self._roots: dict[str, int] = {}  # of the last call of each collective

    def _agree_on_root(self, function: str, root: int, about: str = "") -> None:
        """Compare the call over all ranks if its root is not that of the last one.

        It follows the checks of the other arguments, which send nothing.

        Args:
            function: Name of the collective.
            root: The root.
            about: Description of further arguments.
        """
        if self.size > 1 and self._roots.get(function) != root:
            with self._session.call("agree_root", "sum", None) as call:
                self._session.transport.input_summary = f"root {root} of {function}"
                mismatch = agree_on_root(call, f"{function} with root {root}{about}")
            if mismatch is not None:
                raise mismatch  # on all ranks, and the communicator remains usable
            self._roots[function] = root

    def _reduce_number(self, function: str, x: Any, op: str) -> Number:
        number = as_number(function, x)
        items = self._session.allgather("numbers", op, number)
        return fold([item for item in items if not isinstance(item, Stream)], op)

    def reduce(self, x: Any, root: int = 0, op: Any = "sum", *, out: Any = None) -> Any:
        """Reduce over all ranks; return the result on root, None elsewhere. Collective.

        Args:
            x: This rank's vector, or a number.
            root: Rank that gets the result.
            op: As in `allreduce`.
            out: Array for the result, of x's size and dtype; used on root only.
        """
        op = check_reduction("reduce", op)
        root = check_root("reduce", root, self.size)
        if is_number(x):
            check_number("reduce", out=out is not None)
            self._agree_on_root("reduce", root, f", {op}, a number")
            result = self._reduce_number("reduce", x, op)
            return result if self.rank == root else None
        single = self.size == 1
        stream, restore = to_operand("reduce", x, reduction_of(op), dense=single)
        check_integers("reduce", stream, op)
        if out is not None and self.rank == root:
            restore = write_to("reduce", out, stream.size, stream.dtype)
        self._agree_on_root("reduce", root, f", {op}, {Shape.of(stream)}")
        with self._session.call("reduce", op, stream) as call:
            reduced = reduce(call, copy_if_single(stream, self.size), root)
        return None if reduced is None else restore(divide_if_mean(reduced, op, self.size))

    def reduce_scatter(self, x: Any, op: Any = "sum", *, out: Any = None) -> Any:
        """Reduce over all ranks; rank r gets range r of the result. Collective.

        Range r consists of the blocks r N // P to (r + 1) N // P; `out` must have its size.
        """
        op = check_reduction("reduce_scatter", op)
        single = self.size == 1
        stream, restore = to_operand("reduce_scatter", x, reduction_of(op), dense=single)
        check_integers("reduce_scatter", stream, op)
        if out is not None:
            start, end = range_offsets(stream.blocks, self.size)[self.rank :][:2]
            size = (end - start) * stream.block
            restore = write_to("reduce_scatter", out, size, stream.dtype)
        with self._session.call("reduce_scatter", op, stream) as call:
            streams = scatter_ranges(call, copy_if_single(stream, self.size))
            result = call.add_many(streams)
        return restore(divide_if_mean(result, op, self.size))

    @overload
    def allgather(self, x: Any, *, out: None = None) -> list[Any]: ...
    @overload
    def allgather(self, x: Any, *, out: Any) -> Any: ...
    def allgather(self, x: Any, *, out: Any = None) -> Any:
        """Return the list of all ranks' vectors by rank; sizes may differ. Collective.

        Args:
            x: This rank's vector, or a number.
            out: Array for all vectors, one after the other, which is returned in place of
                the list.
        """
        sent, restore = to_item("allgather", x)
        write = _writer("allgather", out, sent)
        items = self._session.allgather("allgather", "sum", sent)
        return [restore(item) for item in items] if write is None else write(*items)

    def _allgather_add(self, x: Stream, out: Values) -> None:
        """Add the vectors of all ranks to an array in rank order. Collective.

        The messages are those of `allgather`. Ranks whose arrays had the same bits have the
        same bits afterwards.

        Args:
            x: This rank's vector.
            out: Contiguous array of x's size and dtype.
        """
        self._session.allgather_add(densify_if_smaller(x), out)

    # Names that are deprecated, for one more release.

    def allgather_add(self, x: Any, out: Any) -> Any:
        """Add the vectors of all ranks to an array; return it. Deprecated, use `allgather`."""
        _warn("allgather_add", "add what `allgather` returns")
        return self._add(x, out)

    def add_from(self, source: Iterable[Any], out: Any) -> Any:
        """Add vectors of all ranks to an array, each as it is computed. Deprecated."""
        _warn("add_from", "add what `allgather` returns for each vector")
        for x in source:
            self._add(x, out)
        return out

    def reduce_steps(self, steps: Any, algorithm: str = "auto") -> None:
        """Apply the allreduce of each vector of some steps. Deprecated."""
        _warn("reduce_steps", "call `allreduce` in a loop")
        comm: Any = self
        while (x := steps.vector()) is not None:
            steps.apply(comm.allreduce(x, algorithm=algorithm))

    def _add(self, x: Any, out: Any) -> Any:
        stream, _ = to_stream(x, bitwise=True, function="allgather_add")
        self._allgather_add(
            stream, check_out("allgather_add", out, stream.size, stream.dtype)
        )
        return out

    @overload
    def alltoall(self, vectors: Sequence[Any], *, out: None = None) -> list[Any]: ...
    @overload
    def alltoall(self, vectors: Sequence[Any], *, out: Any) -> Any: ...
    def alltoall(self, vectors: Sequence[Any], *, out: Any = None) -> Any:
        """Send a vector to each rank; return the received ones by rank. Collective.

        Args:
            vectors: One vector or number for each rank; sizes may differ. What rank r sends
                is returned as the type of `vectors[r]`.
            out: Array for all received vectors, one after the other, which is returned in
                place of the list.
        """
        check_vectors("alltoall", vectors, self.size)
        items, restores = zip(*(to_item("alltoall", x) for x in vectors), strict=True)
        write = _writer("alltoall", out, items[self.rank])
        with self._session.call("alltoall", "sum", None) as call:
            received = alltoall(call, items)
        if write is not None:
            return write(*received)
        return [restore(x) for restore, x in zip(restores, received, strict=True)]

    def broadcast(self, x: Any = None, root: int = 0, *, out: Any = None) -> Any:
        """Return the root's vector or number on every rank. Collective.

        Args:
            x: Vector or number of the root. On other ranks None, or a vector of the same
                shape.
            root: Rank whose vector is sent.
            out: Array for the vector, of its size and dtype.
        """
        root = check_root("broadcast", root, self.size)
        if x is None and self.rank == root:
            raise ValueError("broadcast: x must be a vector on the root, got None")
        item, restore = (None, None) if x is None else to_item("broadcast", x)
        write = _writer("broadcast", out, item)
        self._agree_on_root("broadcast", root)
        stream = item if isinstance(item, Stream) else None
        with self._session.call("broadcast", "sum", stream) as call:
            container = 0
            if self.rank == root:
                kind = "number" if stream is None else vector_type(x)
                container = CONTAINERS.index(kind)
            result, container = broadcast(call, item, container, len(CONTAINERS), root)
        if write is not None:
            return write(result)
        if stream is None and isinstance(result, Stream):
            return as_vector_type(result, CONTAINERS[container])
        return result if restore is None else restore(result)

    def barrier(self) -> None:
        """Wait until all ranks have called this. Collective."""
        self._session.barrier("barrier")

    # Non-blocking forms

    def iallreduce(
        self,
        x: Any,
        op: Any = "sum",
        algorithm: str = "auto",
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
        out: Any = None,
    ) -> Request:
        """Start an allreduce; `wait` returns its result. Collective.

        Any number may be outstanding. A thread completes them in the order of their
        calls, on a duplicate of this communicator. The first call creates it and
        therefore waits for all ranks.
        """
        op = check_reduction("iallreduce", op, algorithm, quantize, return_seen=return_seen)

        def work(comm: Any) -> Any:
            return comm.allreduce(
                x, op, algorithm, quantize, return_seen=return_seen, out=out
            )

        return self._submit("iallreduce", x, work)

    def ireduce(
        self, x: Any, root: int = 0, op: Any = "sum", *, out: Any = None
    ) -> Request:
        """Start a reduce; `wait` returns the result on root, None elsewhere. Collective."""
        root = check_root("ireduce", root, self.size)
        op = check_reduction("ireduce", op)
        return self._submit("ireduce", x, lambda c: c.reduce(x, root, op, out=out))

    def ireduce_scatter(self, x: Any, op: Any = "sum", *, out: Any = None) -> Request:
        """Start a reduce_scatter; `wait` returns this rank's range. Collective."""
        op = check_reduction("ireduce_scatter", op)
        return self._submit(
            "ireduce_scatter", x, lambda c: c.reduce_scatter(x, op, out=out)
        )

    def iallgather(self, x: Any, *, out: Any = None) -> Request:
        """Start an allgather; `wait` returns the list. Collective."""
        return self._submit("iallgather", x, lambda c: c.allgather(x, out=out))

    def ialltoall(self, vectors: Sequence[Any], *, out: Any = None) -> Request:
        """Start an alltoall; `wait` returns the list of received vectors. Collective."""
        check_vectors("ialltoall", vectors, self.size)
        return self._submit("ialltoall", vectors, lambda c: c.alltoall(vectors, out=out))

    def ibroadcast(self, x: Any = None, root: int = 0, *, out: Any = None) -> Request:
        """Start a broadcast; `wait` returns the root's vector. Collective."""
        root = check_root("ibroadcast", root, self.size)
        return self._submit("ibroadcast", x, lambda c: c.broadcast(x, root, out=out))


def _warn(name: str, remedy: str) -> None:
    message = f"Communicator.{name} is deprecated and will be removed; {remedy}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def _writer(
    function: str, out: Any, item: Stream | Number | None
) -> Callable[..., Any] | None:
    """Return the function that writes received streams to `out`, if that is given."""
    if out is None:
        return None
    check_number(function, out=is_number(item))
    return write_to(function, out, None, item.dtype if isinstance(item, Stream) else None)
