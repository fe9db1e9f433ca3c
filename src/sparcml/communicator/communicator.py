"""The communicator: a rank among ranks, and its collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..collectives import ALLREDUCES
from ..collectives.allgather import allgather
from ..collectives.barrier import barrier
from ..collectives.broadcast import broadcast
from ..collectives.reduce import reduce
from ..collectives.split import scatter_ranges
from ..costs import Network
from ..stream import densify_if_smaller, join
from ..stream.convert import VECTOR_TYPES, as_vector_type, to_stream, vector_type
from ..transport import Stats, Transport
from ..validation import as_integer
from .arguments import (
    check_reduction,
    check_root,
    copy_canonical,
    copy_if_single,
    divide_if_mean,
    reduction_of,
    to_operand,
    write_to,
)
from .requests import NonBlocking, RequestQueue
from .selection import AlgorithmSelector

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ..quantize import Quantizer
    from .selection import Explanation

    class Measured(Protocol):
        """Result of a probe."""

        def model(self) -> Network:
            """Return the network model, with its source."""


MAX_KEY = 2**53  # integers that a float64 represents exactly


class Communicator(NonBlocking):
    """One rank's place among `size` ranks.

    All ranks make the same calls in the same order. Vectors may be a `Stream`, a NumPy
    array, a torch tensor or a scipy sparse row; results have the same type and are
    read-only. As a context manager it closes at the end. `stats` and `cache` are those of
    `Endpoint`.
    """

    def __init__(
        self,
        transport: Transport,
        network: Network | None = None,
        stats: Stats | None = None,
        measure: Callable[[Transport], Measured] | None = None,
    ) -> None:
        super().__init__(transport, stats)
        self._measure = measure
        self._selector = AlgorithmSelector(self._session, network or Network())

    def __repr__(self) -> str:
        return f"Communicator(rank={self.rank}, size={self.size}, engine={self.engine})"

    @property
    def network(self) -> Network:
        """Network model that `auto` uses, the same on all ranks; see its `source`."""
        return self._selector.network

    def recalibrate(
        self, measure: Callable[[Transport], Measured] | None = None
    ) -> Network:
        """Measure the network and this machine, and select algorithms by that. Collective.

        It takes up to a minute, and no other communication should be in progress.
        Communicators that were made from this one keep their network model.
        `sparcml probe` measures the same for later jobs.

        Args:
            measure: Another measurement; it must return the same on all ranks.
        """
        measure = measure or self._measure
        if measure is not None and self.size > 1:
            with self._session.operation("recalibrate"):
                measured = measure(self._transport)
            self._set_network(measured.model())
        return self.network

    def reset_choices(self) -> None:
        """Discard what earlier calls left behind, so that later ones do not depend on it.

        That is the algorithms chosen by `auto`, and the ranges and thresholds of `oktopk`.
        All ranks must call it between the same calls; nothing is sent.
        """
        self._selector.reset()
        self._session.reset()
        self._submit_internal("reset_choices", lambda comm: comm.reset_choices())

    def pin_algorithm(self, x: Any, quantize: Quantizer | None = None) -> str:
        """Return the choice of `auto` for sums of vectors with the size and nnz of x.

        Collective in the first call. The choice holds until `recalibrate` or
        `reset_choices`, without the agreement that `allreduce` repeats from time to time.
        """
        stream, _ = to_operand(x, "sum")
        return self._selector.pin(stream, quantize)

    def _set_network(self, network: Network) -> None:
        self._selector.set_network(network)
        self._submit_internal("recalibrate", lambda comm: comm._set_network(network))

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
        """Reduce over all ranks; every rank gets the same bits. Collective.

        Args:
            x: This rank's vector. Entries that a stream does not store count as the
                identity of the operation.
            op: sum, mean, min, max or prod.
            algorithm: A name from `docs/algorithms.md`, or auto: the cheapest by declared
                cost. For auto the ranks exchange their nnz in the first of 32 similar
                calls, and when the size of results halves or doubles. All algorithms are
                lossless but oktopk, which auto never selects.
            quantize: Encodes values on the wire, in split algorithms only: each value at
                most twice, by its sender and by the owner of its range.
            return_seen: Also return this rank's part of the result as the other ranks saw
                it. All ranks' parts add up to the result, to rounding. Error feedback
                retains the difference.
            out: A NumPy array or torch tensor for the result, of x's size and dtype. It
                may be x itself, but must not overlap it otherwise.
            seed: Random seed of the quantizer, the same on all ranks. Default: the number
                of the call.

        Returns:
            A read-only result of x's type, or `out` if it is given. With return_seen, a
            pair of the result and this rank's part.

        Raises:
            MismatchError: If ranks differ in size, dtype, op, algorithm or call order.
            TransportError: If a rank has raised, stalled or ended.
        """
        check_reduction(op, algorithm, quantize, return_seen=return_seen)
        self._session.check_open("allreduce")
        stream, restore = to_operand(x, reduction_of(op))
        restore_result = restore if out is None else write_to(out, stream)
        if self.size == 1:
            with self._session.operation("allreduce"):
                result = seen = copy_canonical(stream)
        else:
            algorithm, key = self._selector.select(algorithm, stream, op, quantize)
            start = self.now()
            with self._session.call(algorithm, op, stream, quantize, seed) as call:
                call.wants_seen = return_seen
                result = ALLREDUCES[algorithm].run(call, stream)
            seconds = self.now() - start
            self._selector.record(algorithm, key, stream, quantize, result, seconds)
            result = divide_if_mean(result, op, self.size)
            if return_seen:
                # Copied before the result is written to `out`, which may be x itself.
                lossy = quantize is not None or ALLREDUCES[algorithm].lossy
                seen = join(call.seen, call.offsets) if lossy else copy_canonical(stream)
                seen = divide_if_mean(seen, op, self.size)
        if not return_seen:
            return restore_result(result)
        part = restore(seen)
        return restore_result(result), part

    def explain(
        self, x: Any, op: str = "sum", quantize: Quantizer | None = None
    ) -> Explanation:
        """Return the choice of `auto` for x and the costs of all algorithms. Collective."""
        check_reduction(op, quantize=quantize)
        stream, _ = to_operand(x, reduction_of(op))
        return self._selector.explain(stream, op, quantize)

    def reduce(self, x: Any, root: int = 0, op: str = "sum") -> Any:
        """Reduce over all ranks; return the result on root, None elsewhere. Collective."""
        check_root("reduce", root, self.size)
        check_reduction(op)
        stream, restore = to_operand(x, reduction_of(op))
        with self._session.call("reduce", op, stream) as call:
            result = reduce(call, copy_if_single(stream, self.size), root)
        return None if result is None else restore(divide_if_mean(result, op, self.size))

    def reduce_scatter(self, x: Any, op: str = "sum") -> Any:
        """Reduce over all ranks; rank r gets range r of the result. Collective.

        Range r consists of the blocks r N // P to (r + 1) N // P.
        """
        check_reduction(op)
        stream, restore = to_operand(x, reduction_of(op))
        with self._session.call("reduce_scatter", op, stream) as call:
            streams = scatter_ranges(call, copy_if_single(stream, self.size))
            result = call.add_many(streams)
        return restore(divide_if_mean(result, op, self.size))

    def allgather(self, x: Any) -> list[Any]:
        """Return every rank's vector by rank; sizes may differ. Collective."""
        stream, restore = to_stream(x, bitwise=True)
        stream = densify_if_smaller(stream)
        with self._session.call("allgather", "sum", None) as call:
            return [restore(s) for s in allgather(call, stream)]

    def broadcast(self, x: Any = None, root: int = 0) -> Any:
        """Return the root's vector on every rank. Collective.

        On other ranks x may be None, or a vector of the same shape.
        """
        check_root("broadcast", root, self.size)
        if x is None and self.rank == root:
            raise ValueError("broadcast: x must be a vector on the root, got None")
        stream, restore = (None, None) if x is None else to_stream(x, bitwise=True)
        with self._session.call("broadcast", "sum", stream) as call:
            sent, type_number = None, 0
            if self.rank == root and stream is not None:
                sent = densify_if_smaller(stream)
                type_number = VECTOR_TYPES.index(vector_type(x))
            types = len(VECTOR_TYPES)
            result, type_number = broadcast(call, sent, type_number, types, root)
        if restore is not None:
            return restore(result)
        return as_vector_type(result, VECTOR_TYPES[type_number])

    def barrier(self) -> None:
        """Wait until all ranks have called this. Collective."""
        with self._session.call("barrier", "sum", None) as call:
            barrier(call)

    def duplicate(self) -> Communicator:
        """Return a communicator of the same ranks with channels of its own. Collective."""
        return self._child(self._duplicate_transport())

    def split(self, color: int, key: int = 0) -> Communicator:
        """Return a communicator of the ranks with the same color. Collective.

        Its ranks are ordered by key, then by rank.
        """
        color, key = as_integer("split", "color", color), as_integer("split", "key", key)
        for parameter, value in (("color", color), ("key", key)):
            if abs(value) > MAX_KEY:
                raise ValueError(f"split: {parameter} must be within ±2^53, got {value}")
        own = np.array([color, key], np.float64)
        colors, keys = zip(*(a.astype(np.int64) for a in self.allgather(own)), strict=True)
        same = [rank for rank in range(self.size) if colors[rank] == color]
        members = sorted(same, key=lambda rank: (keys[rank], rank))
        with self._session.operation("split"):
            return self._child(self._transport.split(members))

    def _child(self, transport: Transport) -> Communicator:
        stats = Stats(trace=self.stats.trace, clock=transport.now)
        return Communicator(transport, self.network, stats, self._measure)

    def _duplicate_transport(self) -> Transport:
        self.barrier()
        with self._session.operation("duplicate"):
            return self._transport.duplicate()

    def _open_background(self) -> tuple[Communicator, RequestQueue]:
        transport = self._duplicate_transport()
        comm = Communicator(transport, self.network, self.stats, self._measure)
        return comm, RequestQueue(transport)
