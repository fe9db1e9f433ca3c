"""The communicator: a rank among ranks, and its collectives."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..collectives import ALLREDUCES
from ..collectives.numbers import is_number
from ..collectives.sparse.ssar_allgather import in_two_passes
from ..observe import Stats
from ..validation import as_integer
from .arguments import (
    check_finite,
    check_integers,
    check_number,
    check_reduction,
    copy_canonical,
    divide_if_mean,
    is_undefined,
    reduction_of,
    to_operand,
    write_to,
)
from .calls import Calls
from .neighbor_calls import NeighborCalls
from .requests import RequestQueue
from .selection import AUTO, AlgorithmSelector, quantized_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ..collectives.sparse.ssar_allgather import Passes
    from ..costs import Network
    from ..quantize import Quantizer
    from ..stream import Stream
    from ..transport import Transport
    from .selection import Explanation

    class Measured(Protocol):
        """Result of a probe."""

        def model(self) -> Network:
            """Return the network model, with its source."""


MAX_KEY = 2**53  # integers that a float64 represents exactly
DEPRECATED: dict[str, Callable[[Communicator], Any]] = {  # until the next release
    "is_compiled": lambda comm: comm._session.compiled is not None,
    "meet": lambda comm: comm._session.barrier,
    "pin_algorithm": lambda comm: comm._pin_algorithm,
    "sum_in_two_passes": lambda comm: comm._sum_in_two_passes,
}


class Communicator(Calls, NeighborCalls):
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
        super().__init__(transport, stats, network)
        self._measure = measure
        self._selector = AlgorithmSelector(self._session)

    def __repr__(self) -> str:
        return f"Communicator(rank={self.rank}, size={self.size}, engine={self.engine})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in DEPRECATED:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}"
                )
            warnings.warn(
                f"Communicator.{name} is internal and will be removed in the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return DEPRECATED[name](self)

    @property
    def network(self) -> Network:
        """Network model that `auto` uses, the same on all ranks; see its `source`."""
        return self._session.network

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

        That is the algorithms chosen by `auto`, and what plug-ins such as Ok-Topk keep.
        All ranks must call it between the same calls; nothing is sent.
        """
        self._selector.reset()
        self._submit_internal("reset_choices", lambda comm: comm.reset_choices())

    def _pin_algorithm(self, x: Any, quantize: Quantizer | None = None) -> str:
        """Return the choice of `auto` for sums of vectors with the size and nnz of x.

        Collective in the first call. The choice holds until `recalibrate` or
        `reset_choices`, without the agreement that `allreduce` repeats from time to time.
        """
        stream, _ = to_operand("allreduce", x, "sum")
        check_integers("allreduce", stream, "sum", quantize)
        return self._selector.pin(stream, quantize)

    def _set_network(self, network: Network) -> None:
        self._selector.set_network(network)
        self._submit_internal("recalibrate", lambda comm: comm._set_network(network))

    def allreduce(
        self,
        x: Any,
        op: Any = "sum",
        algorithm: str = "auto",
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
        out: Any = None,
        seed: int | None = None,
    ) -> Any:
        """Reduce over all ranks; every rank gets the same bits. Collective.

        Args:
            x: This rank's vector, or a number. Entries that a stream does not store count
                as the identity of the operation. Sparse algorithms do not send zeros, so
                that -0.0 on all ranks adds up to -0.0 only with a dense algorithm.
            op: sum, mean, min, max or prod, or the same as `MPI.SUM` or `ReduceOp.SUM`.
            algorithm: A name from `docs/algorithms.md`, or auto: the cheapest by declared
                cost. For auto the ranks exchange their nnz from time to time, and when
                the nnz of results halves or doubles; that of dense results is estimated from
                a sample. A lossy algorithm, which a plug-in may add, is never selected by auto.
            quantize: Encodes values on the wire, in split algorithms only: each value at
                most twice, by its sender and by the owner of its range. NaN and infinity in x
                raise, unless its `nonfinite` is "propagate".
            return_seen: Also return this rank's part of the result as the other ranks saw
                it. All ranks' parts add up to the result, to rounding. Error feedback
                retains the difference.
            out: A NumPy array or torch tensor for the result, of x's size and dtype. It
                may be x itself, but must not overlap it otherwise.
            seed: Random seed of the quantizer, the same on all ranks. Default: the number
                of the call.

        Returns:
            A read-only result of x's type, or `out` if it is given. With return_seen, a
            pair of the result and this rank's part. Numbers are reduced as in Python:
            integers exactly, to a float if a rank has a float or for a mean.

        Raises:
            MismatchError: If ranks differ in size, dtype, op, algorithm or call order.
            TransportError: If a rank has raised, stalled or ended.
            ValueError: If x has NaN or infinity, and a quantizer refuses them.
        """
        calls = self._session.calls
        if calls is not None and quantize is None and out is None and not return_seen:
            short = calls.allreduce(x, op, algorithm)
            if short is not None:
                return short
        op = check_reduction("allreduce", op, algorithm, quantize, return_seen=return_seen)
        if seed is not None:
            seed = as_integer("allreduce", "seed", seed)
        self._session.check_open("allreduce")
        if is_number(x):
            options = {"quantize": quantize, "return_seen": return_seen}
            named = algorithm if algorithm != AUTO else ""
            check_number("allreduce", algorithm=named, **options, out=out is not None)
            return self._reduce_number("allreduce", x, op)
        dense = self.size == 1 or (algorithm != AUTO and ALLREDUCES[algorithm].is_dense)
        stream, restore = to_operand("allreduce", x, reduction_of(op), dense=dense)
        check_integers("allreduce", stream, op, quantize, algorithm)
        check_finite(self, "allreduce", [stream], quantize)
        write = restore
        if out is not None:
            write = write_to("allreduce", out, stream.size, stream.dtype)
        result, seen = self._reduce_stream(
            stream, op, algorithm, quantize, seed, wants_seen=return_seen
        )
        if seen is None:
            return write(result)
        restored = restore(seen)  # before the result is written to `out`, which may be x
        return write(result), restored

    def _reduce_stream(
        self,
        x: Stream,
        op: str,
        algorithm: str,
        quantize: Quantizer | None,
        seed: int | None,
        *,
        wants_seen: bool,
    ) -> tuple[Stream, Stream | None]:
        """Return the result for a checked stream, and this rank's part of it if wanted."""
        session, selector = self._session, self._selector
        if self.size == 1:
            with session.operation("allreduce"):
                result = copy_canonical(x)
            return result, result if wants_seen else None
        chosen = selector.select(algorithm, x, op, quantize)
        start = self.now()
        result, seen = session.allreduce(
            chosen, op, x, quantize, seed, wants_seen=wants_seen
        )
        seconds = self.now() - start
        entry_bytes: float = x.entry_bytes
        if quantize is not None:
            entry_bytes = quantized_nbytes(x.block, quantize)
        session.count_allreduce(chosen, x.blocks, entry_bytes, x.nnz, seconds)
        if algorithm == AUTO:
            selector.record(x, op, quantize, result)
        if not wants_seen:
            return result, None
        return result, divide_if_mean(
            copy_canonical(x) if seen is None else seen, op, self.size
        )

    def _sum_in_two_passes(
        self,
        x: Stream,
        passes: Passes,
        quantize: Quantizer,
        seed: int,
        *,
        wants_seen: bool = False,
    ) -> tuple[Stream, Stream] | None:
        """Sum a dense vector as `ssar_allgather` does, see `in_two_passes`. Collective.

        Returns:
            None after both passes, otherwise the sum and this rank's part of it.
        """
        start = self.now()
        with self._session.call("ssar_allgather", "sum", x, quantize, seed) as call:
            call.wants_seen = wants_seen
            total = in_two_passes(call, x, passes)
        seconds, entry_bytes = self.now() - start, quantized_nbytes(1, quantize)
        self._session.count_allreduce(
            "ssar_allgather", x.size, entry_bytes, x.size, seconds
        )
        return None if total is None else (total, call.seen[0] if wants_seen else x)

    def explain(
        self, x: Any, op: Any = "sum", quantize: Quantizer | None = None
    ) -> Explanation:
        """Return the choice of `auto` for x and the costs of all algorithms. Collective."""
        op = check_reduction("explain", op, quantize=quantize)
        stream, _ = to_operand("explain", x, reduction_of(op))
        check_integers("explain", stream, op, quantize)
        return self._selector.explain(stream, op, quantize)

    def duplicate(self) -> Communicator:
        """Return a communicator of the same ranks with channels of its own. Collective."""
        return self._child(self._duplicate_transport())

    @overload
    def split(self, color: int, key: int = 0) -> Communicator: ...
    @overload
    def split(self, color: None, key: int = 0) -> None: ...
    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of the ranks with the same color. Collective.

        Its ranks are ordered by key, then by rank. A rank whose color is None or
        `MPI.UNDEFINED` joins no group and gets None.
        """
        if is_undefined(color):
            color = None
        for parameter, value in (("color", color or 0), ("key", key)):
            if abs(as_integer("split", parameter, value)) > MAX_KEY:
                raise ValueError(f"split: {parameter} must be within ±2^53, got {value}")
        own = np.array([np.nan if color is None else color, key], np.float64)
        colors, keys = zip(*self.allgather(own), strict=True)
        same = [rank for rank in range(self.size) if colors[rank] == color]
        members = sorted(same, key=lambda rank: (keys[rank], rank))
        with self._session.operation("split"):
            if color is None:
                self._transport.decline_split()
                return None
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
