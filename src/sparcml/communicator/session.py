"""The collectives of a communicator: compiled where they can be, or else in Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..collectives import Call, Shape
from ..collectives.agree import agree, quantizer_code, resolve
from ..collectives.allgather import add_all, allgather
from ..collectives.base import AGREEMENT
from ..collectives.compiled import CompiledCollectives, compile_collectives
from ..costs.workload import Workload
from ..errors import MismatchError
from ..kernels import _core
from ..stream import Stream
from .call_sequence import CallSequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..collectives.numbers import Number
    from ..observe import Stats
    from ..observe.timeline import Span
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport import Transport
    from .choice_cache import Choice

T = TypeVar("T")


class Session(CallSequence):
    """The collectives of a communicator.

    The compiled ones enter and leave without a context manager, which costs as much as a
    message.

    Attributes:
        prepared: Compiled allreduces that were made before, once there is one.
    """

    def __init__(self, transport: Transport, stats: Stats | None = None) -> None:
        super().__init__(transport, stats)
        self.prepared: _core.PreparedCalls | None = None
        self._compiled: CompiledCollectives | None = None
        self._is_compiled = False  # whether it was tried

    def close(self) -> None:
        """Free the engine's resources and unused memory; a second call does nothing."""
        self.prepared = None
        super().close()

    @property
    def compiled(self) -> CompiledCollectives | None:
        """The compiled collectives, or None if Python runs all of them."""
        if self._compiled is None and not self._is_compiled:
            self._is_compiled = True
            self._compiled = compile_collectives(self._link)
            if self._compiled is not None:
                self.prepared = self._prepared_calls(self._compiled)
        return self._compiled

    def use_python(self) -> None:
        """Run all collectives in Python from now on, where each is defined."""
        self._is_compiled, self._compiled, self.prepared = True, None, None

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

    def _prepared_calls(self, compiled: CompiledCollectives) -> _core.PreparedCalls:
        totals = _core.Totals()
        self.stats.sources.append(totals.drain)
        return _core.PreparedCalls(
            compiled,
            compiled.loop,
            self.transport,
            self.stats,
            self._busy,
            self._state,
            totals,
            Stream,
            np.frombuffer,
            np.dtype(np.uint32),
        )

    def prepare(
        self, asked: str, name: str, choice: Choice | None, x: Stream, predicted: float
    ) -> None:
        """Prepare sums like one that was made: the next ones run without Python.

        Args:
            asked: The algorithm that the caller asked for.
            name: The algorithm of the call.
            choice: The choice if auto was asked for; such sums run while it holds.
            x: The vector of this rank.
            predicted: Predicted seconds of the call.
        """
        if self._compiled is not None and self.prepared is not None:
            self._compiled.prepare(self.prepared, asked, name, choice, x, predicted)

    def fail_prepared(self, prepared: _core.PreparedCalls, error: BaseException) -> None:
        """Report the error of a prepared call to all ranks.

        An error before or after the call, such as a signal, is none of it.
        """
        if prepared.take_over():
            del prepared  # see `_fail`: the error refers to this frame
            self._fail_compiled(error, None)

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
        sequence = self._state.sequence
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
        self._state.begin("native")
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
            result = function(name, op, self._state.sequence, x)
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
            found = compiled.agree(op, self._state.sequence, x, quantizer_code(quantizer))
            if isinstance(found, tuple):
                nodes = self.transport.nodes
                workload: Workload | MismatchError = Workload(
                    x.blocks, x.entry_bytes, found, nodes
                )
            else:
                call = Call(
                    self._link, AGREEMENT, op, self._state.sequence, Shape.of(x), quantizer
                )
                workload = resolve(call, x, found)
                call.finish()
        except BaseException as error:
            self._fail_compiled(error, span)
            raise
        self._leave(span)
        return workload

    def _fail(self, error: BaseException, span: Span | None) -> None:
        # It refers to the transport, whose error refers to this call: a cycle that Python's
        # collector cannot see.
        self.prepared = None
        super()._fail(error, span)

    def _fail_compiled(self, error: BaseException, span: Span | None) -> None:
        assert self._compiled is not None
        self._compiled.abandon()
        self._fail(error, span)
