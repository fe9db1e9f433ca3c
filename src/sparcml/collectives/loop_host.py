"""What the compiled message loop asks of Python, and the counters that it returns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import buffer_pool
from ..stream import Stream
from .allgather import unbundle
from .base import AGREEMENT
from .call import Call
from .checks import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..kernels import _core
    from ..observe import CountingTransport
    from ..quantize import Quantizer
    from ..stream.arrays import Indices, Values
    from ..transport import Message, Pending

PHASE_NAMES = ("encode", "send", "wait", "decode", "add")
ACTIONS = ("receive from rank {}", "send to rank {}", "native allreduce")
NATIVE = 2  # of ACTIONS
VECTOR, HEADER, BUNDLE = range(3)  # how the loop reads a message
CLOCK_SECONDS = 1e-3  # by which two readings of one clock differ at most


class LoopHost:
    """The functions that `cpp/messages` calls, for one communicator.

    Args:
        link: Counting transport of the communicator.
        loop: The compiled loop.

    Attributes:
        current: Collective, operation, number and vector of the current call. The loop sets it
            for prepared calls.
    """

    def __init__(self, link: CountingTransport, loop: _core.MessageLoop) -> None:
        self._link, self._transport = link, link.transport
        self.loop = loop
        self.current: tuple[str, str, int, Stream | Values | None] = ("", "", 0, None)
        self._quantizer: Quantizer | None = None  # of the current call
        self._is_waiting = False
        self._sending: list[Pending] = []
        self._expected: list[Pending] = []

    def is_traced(self) -> bool:
        """Return whether the loop records each message."""
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
            control.time_out(self.loop.poll)

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
        call, received = self.call(), np.frombuffer(message, np.uint8)
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

    def call(self) -> Call:
        """Return the current call, for the checks of its messages."""
        collective, op, sequence, x = self.current
        shape = None if x is None else _shape(x)
        return Call(self._link, collective, op, sequence, shape, self._quantizer)

    def _describe(self, action: int | None = None) -> None:
        """Describe the call and its input, for errors and the reports to other ranks."""
        name, op, sequence, x = self.current
        if x is not None:
            encoding = "" if self._quantizer is None else f", {self._quantizer}"
            shape, transport = _shape(x), self._transport
            transport.input_summary = f"{shape}, {op}{encoding}"
            transport.longest_message = shape.longest_message(transport.size)
        if action == NATIVE and name == AGREEMENT:  # which is over
            self._transport.operation = f"native #{sequence + 1}"

    def _action(self, peer: int, action: int) -> str:
        return ACTIONS[action].format(self._link.global_rank(peer))


def _shape(x: Stream | Values) -> Shape:
    return Shape.of(x) if isinstance(x, Stream) else Shape(x.size, 1, x.dtype)


def arrays_of(
    found: tuple[int, Any, Any], dtype: np.dtype[Any], block: int
) -> tuple[Indices | None, Values]:
    """Return the indices and values of a vector that the loop has returned."""
    nnz, positions, stored = found
    indices = None
    if positions is not None:
        indices = np.frombuffer(positions[0], np.uint32, nnz, positions[1])
    return indices, np.frombuffer(stored[0], dtype, nnz * block, stored[1])
