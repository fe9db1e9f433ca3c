"""Collectives whose rounds run in one compiled call, without Python between the messages.

`cpp/messages` has the loops. Each equals its definition in this folder bit for bit and message
for message, so that ranks of both kinds can take part in one call. The loop returns to Python
at least every millisecond of waiting, where control messages are read and timeouts checked, and
to raise the errors of messages: by the checks of `Call`, on the same bytes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import buffer_pool
from ..kernels import _core
from ..stream import MEAN, Stream
from ..stream.densify import densify
from ..stream.reduction import OPS
from ..transport.wait_policy import wait_policy
from ..wire.header import DTYPE_CODES
from . import numbers
from .allgather import unbundle
from .base import AGREEMENT, call_code
from .call import Call
from .checks import Shape
from .compiled_native import NativeAllreduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..stream.arrays import Indices, Values
    from ..transport import CountingTransport, Message, Pending
    from ..transport.mpi_functions import MpiFunctions
    from .numbers import Number

ALGORITHMS = {
    "ssar_recursive_double": 3,
    "ssar_split_allgather": 4,
    "dsar_split_allgather": 5,
    "ssar_ring": 15,
}
OP_NUMBERS = {op: number for number, op in enumerate(OPS)} | {MEAN: 0}
PHASE_NAMES = ("encode", "send", "wait", "decode", "add")
ACTIONS = ("receive from rank {}", "send to rank {}", "native allreduce")
NATIVE = 2  # of ACTIONS
VECTOR, HEADER, BUNDLE = range(3)  # how the loop reads a message
CLOCK_SECONDS = 1e-3  # by which two readings of one clock differ at most
ENGINES = ("mpi", "threads", "torch")
FLOAT32 = DTYPE_CODES[np.dtype(np.float32)]


class CompiledCollectives:
    """The compiled collectives of one communicator, and what their loop asks of Python.

    Args:
        link: Counting transport of the communicator.
        loop: The compiled loop.
        mpi: Functions of MPI, if that is the engine.
    """

    def __init__(
        self,
        link: CountingTransport,
        loop: _core.MessageLoop,
        mpi: MpiFunctions | None = None,
    ) -> None:
        self._link, self._transport = link, link.transport
        self._loop = loop
        self._native = None if mpi is None else NativeAllreduce(self, link, loop, mpi)
        self._codes: dict[tuple[str, str], int] = {}
        self._current: tuple[str, str, int, Stream | Values | None] = ("", "", 0, None)
        self._is_waiting = False
        self._sending: list[Pending] = []
        self._expected: list[Pending] = []

    # Calls

    def allreduce(self, algorithm: str, op: str, sequence: int, x: Stream) -> Stream:
        """Return the result of an allreduce; a mean is a sum that the caller divides."""
        self._current = (algorithm, op, sequence, x)
        values, block = x.raw_values, x.block
        dtype = values.dtype
        returned = self._loop.allreduce(
            self,
            self._code(algorithm, op),
            sequence & 0xFFFFFFFF,
            self._is_traced(),
            ALGORITHMS[algorithm],
            OP_NUMBERS[op],
            DTYPE_CODES[dtype],
            x.size // block,
            block,
            x.raw_indices,
            values,
        )
        self.count(returned)
        indices, result = _arrays(returned[0], dtype, block)
        return Stream.unchecked(x.size, indices, result, block, x.fill, scratch=True)

    def has(self, algorithm: str, op: str, dtype: np.dtype[Any]) -> bool:
        """Return whether an allreduce is compiled."""
        if algorithm == "native":
            return self._native is not None and self._native.has(op, dtype)
        return algorithm in ALGORITHMS

    def native(self, algorithm: str, op: str, sequence: int, x: Stream) -> Stream:
        """Return the result of the engine's own allreduce, after an agreement."""
        assert self._native is not None
        self._current = (algorithm, op, sequence, x)
        values = densify(x).raw_values
        out = self._native.run(op, sequence, values, x.block, agree=False)
        assert isinstance(out, np.ndarray)
        return Stream.unchecked(x.size, None, out, x.block, x.fill, scratch=True)

    def native_array(
        self, op: str, sequence: int, values: Values
    ) -> Values | list[Message]:
        """Agree on an array and reduce it with the numbers `sequence` and the next one."""
        assert self._native is not None
        self._current = (AGREEMENT, op, sequence, values)
        return self._native.run(op, sequence, values, agree=True)

    def allgather(
        self, name: str, op: str, sequence: int, x: Stream | Number
    ) -> list[Stream | Number]:
        """Return the streams or numbers of all ranks by rank, see `allgather.allgather`."""
        self._current = (name, op, sequence, None)
        call = self._call()
        shaped = x if isinstance(x, Stream) else numbers.DESCRIBED
        dtype, size, block = shaped.raw_values.dtype, shaped.size, shaped.block
        returned = self._loop.allgather(
            self,
            self._code(name, op),
            sequence & 0xFFFFFFFF,
            self._is_traced(),
            DTYPE_CODES[dtype],
            shaped.blocks,
            block,
            numbers.encode(call, x, 0),
        )
        self.count(returned)
        items: list[Stream | Number] = []
        for rank, item in enumerate(returned[0]):
            if isinstance(item, bytes):
                message = np.frombuffer(item, np.uint8)
                items.append(numbers.decode(call, message, rank, 0))
            else:
                indices, values = _arrays(item, dtype, block)
                items.append(
                    Stream.unchecked(
                        size, indices, values, block, shaped.fill, scratch=True
                    )
                )
        return items

    def barrier(self, name: str, sequence: int) -> None:
        """Wait for all ranks."""
        self._current = (name, "sum", sequence, None)
        code = self._code(name, "sum")
        traced = self._is_traced()
        self.count(self._loop.barrier(self, code, sequence & 0xFFFFFFFF, traced, FLOAT32))

    def agree(
        self, op: str, sequence: int, x: Stream, round: int
    ) -> tuple[int, ...] | list[Message]:
        """Return the nnz of all ranks, or their headers if these differ."""
        self._current = (AGREEMENT, op, sequence, x)
        returned = self._loop.agree(
            self,
            self._code(AGREEMENT, op),
            sequence & 0xFFFFFFFF,
            self._is_traced(),
            round,
            DTYPE_CODES[x.dtype],
            x.blocks,
            x.block,
            x.nnz,
        )
        self.count(returned)
        found = returned[0]
        if isinstance(found, tuple):
            return found
        return list(np.frombuffer(found, np.uint8).reshape(self._link.size, -1))

    def _code(self, collective: str, op: str) -> int:
        code = self._codes.get((collective, op))
        if code is None:
            code = self._codes[collective, op] = call_code(collective, op)
        return code

    def _is_traced(self) -> bool:
        stats = self._link.stats
        return stats.trace is not None or stats.sent is not None

    def count(self, returned: tuple[Any, ...]) -> None:
        """Count the messages and phases of a call."""
        stats = self._link.stats
        stats.count_compiled(returned)
        if returned[10] is None:
            return
        sent, events = returned[10]
        if stats.sent is not None:
            stats.sent.extend(sent)
        if stats.trace is not None:
            shift = self._transport.now() - time.perf_counter()  # of another clock
            shift = shift if abs(shift) > CLOCK_SECONDS else 0.0
            for phase, start, end, round, peer, nbytes, nnz in events:
                fields = {"peer": peer, "bytes": nbytes, "round": round, "nnz": nnz}
                args = {name: value for name, value in fields.items() if value >= 0}
                stats.trace.add(PHASE_NAMES[phase], start + shift, end + shift, args)

    # What the loop asks for

    def allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """Return memory for a message or an array."""
        return buffer_pool.empty(nbytes, np.uint8)

    def waiting(self, peer: int, action: int, seconds: float) -> None:
        """Read control messages and check the timeouts of a wait."""
        transport = self._transport
        control = transport.control
        if not self._is_waiting:
            self._is_waiting = True
            self._describe(action)
            control.begin_wait(peer, self._action(peer, action))
        control.check(seconds)
        if seconds > transport.timeouts.busy:
            control.time_out(self._loop.poll)

    def end_wait(self) -> None:
        """Record that the wait is over."""
        self._is_waiting = False
        self._transport.control.end_wait()

    def read_control(self) -> None:
        """Read control messages that have arrived before the call."""
        self._transport.control.check()

    def reject(
        self, reading: int, message: bytes, source: int, round: int, blocks: int
    ) -> None:
        """Raise the error of a message that the loop does not accept."""
        self._describe()
        call, received = self._call(), np.frombuffer(message, np.uint8)
        if reading == HEADER:
            call.verify(received, source)
        elif reading == BUNDLE:
            with call.decoding_from(source):
                messages = unbundle(call, received, source, blocks)
            for i, header in enumerate(messages):
                call.verify(header, (source + i) % call.size)
        else:
            call.decode(received, source, round, blocks)

    def lose(self, code: int, peer: int, action: int) -> NoReturn:
        """Raise the error of a function of the engine."""
        self._describe(action)
        raise self._transport.lost_by_code(code, peer, self._action(peer, action))

    def send(self, peer: int, message: Message, nbytes: int, round: int) -> None:
        """Start sending a message, for engines that the loop cannot call."""
        del round
        self._describe()
        self._sending[:] = [pending for pending in self._sending if not pending.poll()]
        self._sending.append(self._transport.isend(peer, message[:nbytes]))

    def expect(self, peer: int) -> None:
        """Announce that a message will be received, which makes progress in all waits."""
        self._expected.append(self._transport.irecv(peer))

    def receive(self, peer: int) -> Message:
        """Return the peer's next message."""
        self._describe()
        expected = self._expected
        awaited = next((p for p in expected if p.peer == peer), None)
        if awaited is None:
            return self._transport.receive(peer)

        def poll() -> bool:
            blocked: set[int] = set()
            for pending in expected:  # messages of one peer arrive in order
                if pending.peer not in blocked and not pending.begin():
                    blocked.add(pending.peer)
            return awaited.poll()

        self._transport.wait_for(poll, peer, awaited.action)
        expected.remove(awaited)
        return awaited.result()

    def finish(self) -> None:
        """Wait until all messages have been sent."""
        for pending in self._sending:
            pending.wait()
        self._sending.clear()

    def abandon(self) -> None:
        """Forget the messages of a call that has failed."""
        self._is_waiting = False
        self._sending, self._expected = [], []

    # Errors

    def _call(self) -> Call:
        """Return the current call, for the checks of its messages."""
        collective, op, sequence, x = self._current
        shape = None if x is None else _shape(x)
        return Call(self._link, collective, op, sequence, shape)

    def _describe(self, action: int | None = None) -> None:
        """Describe the call and its input, for errors and the reports to other ranks."""
        name, op, sequence, x = self._current
        if x is not None:
            self._transport.input_summary = f"{_shape(x)}, {op}"
        if action == NATIVE and name == AGREEMENT:  # which is over
            self._transport.operation = f"native #{sequence + 1}"

    def _action(self, peer: int, action: int) -> str:
        return ACTIONS[action].format(self._link.global_rank(peer))


def _arrays(
    found: tuple[int, Any, Any], dtype: np.dtype[Any], block: int
) -> tuple[Indices | None, Values]:
    """Return the indices and values of a vector that the loop has returned."""
    nnz, positions, stored = found
    indices = None
    if positions is not None:
        indices = np.frombuffer(positions[0], np.uint32, nnz, positions[1])
    return indices, np.frombuffer(stored[0], dtype, nnz * block, stored[1])


def _shape(x: Stream | Values) -> Shape:
    return Shape.of(x) if isinstance(x, Stream) else Shape(x.size, 1, x.dtype)


def compile_collectives(link: CountingTransport) -> CompiledCollectives | None:
    """Return the compiled collectives of a communicator, or None if Python must run them."""
    transport = link.transport
    if transport.is_simulated or transport.engine not in ENGINES or link.size == 1:
        return None
    if transport.engine != "mpi":
        return CompiledCollectives(link, _core.host_loop(link.rank, link.size))
    mpi = transport.functions()
    if mpi is None:
        return None
    policy = wait_policy(transport)
    loop = _core.mpi_loop(
        link.rank,
        link.size,
        mpi.handle_bytes,
        mpi.functions,
        mpi.handles,
        mpi.any_source,
        mpi.any_tag,
        mpi.tag_at,
        transport.segment_bytes,
        policy.spin,
        policy.yield_,
    )
    return CompiledCollectives(link, loop, mpi)
