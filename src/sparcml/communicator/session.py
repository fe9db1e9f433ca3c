"""The calls of a communicator: one at a time, numbered, counted, and failing together.

Collectives are compiled where they can be, and run by their definitions otherwise.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from .. import buffer_pool
from ..collectives import ALLREDUCES, Call, Shape
from ..collectives.agree import agree
from ..collectives.allgather import add_all, allgather
from ..collectives.barrier import barrier
from ..collectives.base import AGREEMENT
from ..collectives.compiled import CompiledCollectives, open_channel
from ..costs import Network
from ..costs.estimate import TimePredictor
from ..costs.workload import Workload
from ..errors import MismatchError, TransportError
from ..kernels import _core
from ..observe import CountingTransport, Stats
from ..stream import join
from ..transport.base import PHYSICAL_MEMORY
from .arguments import divide_if_mean

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from ..collectives.numbers import Number
    from ..observe.timeline import Span
    from ..quantize import Quantizer
    from ..stream import Stream
    from ..stream.arrays import Values
    from ..transport import Transport

T = TypeVar("T")

WATCH_SECONDS = 0.05  # between two looks at the control messages


class Session:
    """The calls of a communicator: numbered, counted, and failing on all ranks together.

    The compiled ones enter and leave in compiled code.

    Attributes:
        network: Network model that predictions use.
        state: Number and name of the current call.
        choices: Algorithms that `auto` has chosen.
        calls: The compiled calls, once there was a call, unless Python runs all of them.
    """

    def __init__(
        self,
        transport: Transport,
        stats: Stats | None = None,
        network: Network | None = None,
    ) -> None:
        self.transport = transport
        self.stats = stats or Stats(clock=transport.now)
        self.state = _core.CallState()
        self.choices = _core.ChoiceCache()
        self.calls: _core.CompiledCalls | None = None
        self._link = CountingTransport(transport, self.stats)
        self._compiled: CompiledCollectives | None = None
        self._is_opened = False  # whether compiled collectives were looked for
        self._persistent: dict[str, Any] = {}  # state of collectives between calls
        self.set_network(network or Network())

    def set_network(self, network: Network) -> None:
        """Use another network model, and discard the choices made with the last one."""
        self.network = network
        self._predictor = TimePredictor(network, self.transport.nodes)
        self.choices.clear()

    def close(self) -> None:
        """Free the engine's resources and unused memory; a second call does nothing."""
        if not self.state.is_closed:
            self.state.is_closed = True
            self.transport.close()
            if not self.transport.siblings:
                buffer_pool.DEFAULT_POOL.release()
                _core.release_messages()

    def reset(self) -> None:
        """Discard the choices, and the state that collectives keep between calls."""
        self.choices.clear()
        self._persistent.clear()

    @property
    def compiled(self) -> CompiledCollectives | None:
        """The compiled collectives, or None if Python runs all of them."""
        if not self._is_opened:
            self._is_opened = True
            if (channel := open_channel(self._link)) is not None:
                self._compiled = CompiledCollectives(
                    self._link, channel, self.state, self.choices, self.predict
                )
                self.calls = self._compiled.calls
        return self._compiled

    def use_python(self) -> None:
        """Run all collectives in Python from now on, where each is defined."""
        self._is_opened, self._compiled, self.calls = True, None, None

    # Collectives

    def allreduce(
        self,
        algorithm: str,
        op: str,
        x: Stream,
        quantizer: Quantizer | None = None,
        seed: int | None = None,
        *,
        wants_seen: bool = False,
    ) -> tuple[Stream, Stream | None]:
        """Return the result, and this rank's part of it if that is wanted and lossy."""
        compiled = self.compiled
        if compiled is not None and compiled.has(algorithm, op, x.dtype, quantizer):
            return self._run(
                algorithm,
                lambda: compiled.allreduce(algorithm, op, x, quantizer, seed, wants_seen),
                op,
                x,
            )
        chosen, seen = ALLREDUCES[algorithm], None
        with self.call(algorithm, op, x, quantizer, seed) as call:
            call.wants_seen = wants_seen
            result = chosen.run(call, x)
        if wants_seen and call.seen and (quantizer is not None or chosen.lossy):
            seen = join(call.seen, call.offsets)
        return divide_if_mean(result, op, self.transport.size), seen

    def allgather(self, name: str, op: str, x: Stream | Number) -> list[Stream | Number]:
        """Return the streams or numbers of all ranks by rank."""
        compiled = self.compiled
        if compiled is None:
            with self.call(name, op, None) as call:
                return allgather(call, x)
        items = self._run(name, lambda: compiled.allgather(name, op, x))
        assert items is not None
        return items

    def allgather_add(self, x: Stream, out: Values) -> None:
        """Add the streams of all ranks to an array, by the messages of an allgather."""
        compiled, name = self.compiled, "allgather"
        if compiled is None:
            items: list[Stream | Number] | None = self.allgather(name, "sum", x)
        else:
            items = self._run(name, lambda: compiled.allgather(name, "sum", x, out))
        if items is not None:
            add_all(items, out)

    def barrier(self, name: str) -> None:
        """Wait until all ranks are in the barrier of this name."""
        compiled = self.compiled
        if compiled is None:
            with self.call(name, "sum", None) as call:
                barrier(call)
        else:
            self._run(name, lambda: compiled.barrier(name))

    def agree(
        self, op: str, x: Stream, quantizer: Quantizer | None
    ) -> Workload | MismatchError:
        """Return the workload of all ranks, or the mismatch between them."""
        compiled, name = self.compiled, AGREEMENT
        if compiled is None:
            with self.call(name, op, x, quantizer) as call:
                return agree(call, x)
        agreed = self._run(name, lambda: compiled.agree(name, op, x, quantizer), op, x)
        if isinstance(agreed, MismatchError):
            return agreed
        return Workload(x.blocks, x.entry_bytes, agreed, self.transport.nodes)

    def predict(self, algorithm: str, blocks: int, entry_bytes: float, nnz: int) -> float:
        """Return the predicted seconds of an allreduce."""
        return self._predictor.seconds(ALLREDUCES[algorithm], blocks, entry_bytes, nnz)

    def count_allreduce(
        self, algorithm: str, blocks: int, entry_bytes: float, nnz: int, seconds: float
    ) -> None:
        """Count the predicted and the measured seconds of an allreduce."""
        predicted = self.predict(algorithm, blocks, entry_bytes, nnz)
        self.stats.count_allreduce(algorithm, predicted, seconds)

    # Calls

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
                self.state.sequence,
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
        if self.state.is_closed or failure is not None:
            why = f" after: {failure}" if failure is not None else ""
            raise TransportError(f"{name}: this communicator is closed{why}")

    def watch(self, finished: threading.Event, action: str) -> None:
        """Wait for an event of all ranks between two calls, see `Communicator.watch`."""
        transport = self.transport
        transport.operation = f"{action} #{self.state.sequence + 1}"
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
        transport.operation = self.state

    @contextmanager
    def operation(self, name: str, detail: str = "") -> Iterator[Span | None]:
        """Enter a call; an error in it is reported to all ranks."""
        self.check_open(name)
        self.state.begin(name + detail)
        transport = self.transport
        transport.operation = self.state
        try:
            with self._span(name) as span:
                transport.control.check()
                yield span
        except BaseException as error:
            transport.abort(error)
            self.state.fail()
            raise
        transport.input_summary = ""
        transport.longest_message = PHYSICAL_MEMORY
        self.state.end()

    def _run(
        self,
        name: str,
        function: Callable[[], T],
        op: str = "",
        x: Stream | None = None,
    ) -> T:
        """Return the result of a compiled collective, which enters and leaves by itself."""
        self.check_open(name)
        self.transport.operation = self.state
        if self.stats.trace is None:
            return function()
        with self._span(name) as span:
            if span is not None:
                span.label = f"{name} #{self.state.sequence + 1}"
                if x is not None:
                    span.args.update(op=op, size=x.size, nnz=x.nnz)
            return function()

    @contextmanager
    def _span(self, name: str) -> Iterator[Span | None]:
        """Add the time of a call to the trace, if there is one."""
        trace = self.stats.trace
        span = None if trace is None else trace.begin(name, self.transport)
        try:
            yield span
        except BaseException as error:
            if span is not None:
                span.args["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            if span is not None and self.stats.trace is not None:
                self.stats.trace.end(span)
