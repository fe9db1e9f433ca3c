"""Collectives whose rounds run in one compiled call, without Python between the messages.

`cpp/messages` has the loops. Each equals its definition in this folder bit for bit and message
for message, so that ranks of both kinds can take part in one call. A loop looks for control
messages every millisecond of waiting. It returns to Python to read them, every 10 ms of waiting
to check timeouts, and to raise the errors of messages: by the checks of `Call`, on the same bytes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import buffer_pool
from ..costs.workload import native_nbytes
from ..errors import MismatchError
from ..kernels import _core
from ..quantize import QSGD
from ..quantize.base import SEEDS
from ..stream import OPS, Stream, add, difference, join, range_offsets
from ..stream.densify import densify
from ..transport.base import PHYSICAL_MEMORY
from ..transport.timeouts import wait_policy
from ..wire.header import DTYPE_CODES
from . import numbers
from .agree import quantizer_code, resolve
from .allgather import unbundle
from .base import call_code
from .call import Call
from .checks import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..observe import CountingTransport
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport import Message, Pending
    from .numbers import Number

NATIVE = _core.Algorithm.native.name
ALGORITHMS = tuple(a.name for a in _core.Algorithm if a.name != NATIVE)
ENGINES = ("mpi", "threads", "torch")
PACED_BYTES = 32 << 10  # of a segment of an exchange between nodes; MPI sends it at once
ACTIONS = ("receive from rank {}", "send to rank {}", "native allreduce")
VECTOR, HEADER, BUNDLE = range(3)  # how a loop reads a message
CLOCK_SECONDS = 1e-3  # by which two readings of one clock differ at most


class CompiledCollectives:
    """The compiled collectives of one communicator, and the functions that they call.

    Args:
        link: Counting transport of the communicator.
        channel: What moves the messages.
        state: Number and name of the current call.
        choices: Choices of `auto`.
        predict: Function that returns the predicted seconds of an allreduce, given its name,
            the blocks of the vector, the bytes of a block and the nnz.

    Attributes:
        calls: The compiled code.
        stats: Statistics of the communicator.
        control: Its control messages.
    """

    def __init__(
        self,
        link: CountingTransport,
        channel: _core.Channel,
        state: _core.CallState,
        choices: _core.ChoiceCache,
        predict: Callable[[str, int, float, int], float],
    ) -> None:
        self._link, self._transport, self._state = link, link.transport, state
        self.stats, self.control, self.predict = link.stats, link.transport.control, predict
        self._identities: dict[tuple[str, str], _core.CallIdentity] = {}
        self._is_waiting = False
        self._sending: list[Pending] = []
        self._expected: list[Pending] = []
        self.calls = _core.CompiledCalls(self, channel, state, choices, Stream)
        self.stats.sources.append(self.calls.drain)

    def has(
        self, algorithm: str, op: str, dtype: np.dtype[Any], quantizer: Quantizer | None
    ) -> bool:
        """Return whether an allreduce is compiled."""
        if algorithm == NATIVE:
            is_sum = dtype.kind != "f" or op not in ("min", "max")
            return self._transport.engine == "mpi" and is_sum
        is_packed = type(quantizer) is QSGD and quantizer.coder is None
        return algorithm in ALGORITHMS and (quantizer is None or is_packed)

    def allreduce(
        self,
        algorithm: str,
        op: str,
        x: Stream,
        quantizer: Quantizer | None,
        seed: int | None,
        wants_seen: bool,
    ) -> tuple[Stream, Stream | None]:
        """Return the result, and this rank's part of it if it is quantized and wanted."""
        quantization = None
        if quantizer is not None:
            seed = self._state.sequence + 1 if seed is None else seed
            reduced = quantizer.for_reduced(self._link.size)
            quantization = _core.Quantization(
                quantizer.settings, reduced.settings, seed % SEEDS
            )
        wants_seen = wants_seen and quantizer is not None
        operand = densify(x) if algorithm == NATIVE else x
        identity = self._identity(algorithm, op)
        result, parts = self.calls.reduce(
            identity, operand, quantizer, quantization, wants_seen
        )
        return result, self._seen(x, parts) if wants_seen else None

    def _seen(self, x: Stream, parts: list[Stream]) -> Stream:
        """Return this rank's part of the result, see `split.encode_range`."""
        *parts, reduced, decoded = parts
        rank = self._link.rank
        parts[rank] = add(parts[rank], difference(decoded, reduced))
        return join(parts, range_offsets(x.blocks, self._link.size))

    def allgather(
        self, name: str, op: str, x: Stream | Number, out: Values | None = None
    ) -> list[Stream | Number] | None:
        """Return the streams or numbers of all ranks by rank, see `allgather.allgather`.

        With `out`, streams of its size are added to it, and the result is None.
        """
        described = x if isinstance(x, Stream) else numbers.DESCRIBED
        items: list[Stream | Number] | None = self.calls.allgather(
            self._identity(name, op), x, described, out
        )
        return items

    def barrier(self, name: str) -> None:
        """Wait for all ranks."""
        self.calls.barrier(self._identity(name, "sum"))

    def agree(
        self, name: str, op: str, x: Stream, quantizer: Quantizer | None
    ) -> tuple[int, ...] | MismatchError:
        """Return the nnz of all ranks, or the mismatch between them."""
        agreed: tuple[int, ...] | MismatchError = self.calls.agree(
            self._identity(name, op), x, quantizer, quantizer_code(quantizer)
        )
        return agreed

    def _identity(self, name: str, op: str) -> _core.CallIdentity:
        identity = self._identities.get((name, op))
        if identity is None:
            identity = _core.CallIdentity(name, op, call_code(name, op))
            self._identities[name, op] = identity
        return identity

    # What the compiled code calls

    def allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """Return memory for a message or an array."""
        return buffer_pool.empty(nbytes, np.uint8)

    def waiting(self, peer: int, action: int, seconds: float) -> None:
        """Read control messages and check the timeouts of a wait."""
        control = self.control
        if not self._is_waiting:
            self._is_waiting = True
            self._describe()
            control.begin_wait(peer, self._action(peer, action))
        control.check(seconds)
        if seconds > self._transport.timeouts.busy:
            control.time_out(self.calls.poll)

    def end_wait(self) -> None:
        """Record that the wait is over."""
        self._is_waiting = False
        self.control.end_wait()

    def read_control(self) -> None:
        """Read control messages that have arrived before the call."""
        self.control.check()

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
        self._describe()
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

    def encode(self, x: Stream | Number) -> Message:
        """Return the message of a vector or number whose shape other ranks may not have."""
        return numbers.encode(self._call(), x, 0)

    def decode(self, message: bytes, source: int) -> Stream | Number:
        """Return a vector or number of another shape than this rank's."""
        return numbers.decode(self._call(), np.frombuffer(message, np.uint8), source, 0)

    def resolve(self, headers: bytes) -> MismatchError:
        """Return the mismatch that the headers of all ranks describe."""
        call, x = self._call(), self.calls.current.x
        if not isinstance(x, Stream):
            x = Stream.unchecked(x.size, None, x.reshape(-1))
        messages = np.frombuffer(headers, np.uint8).reshape(call.size, -1)
        mismatch = resolve(call, x, list(messages))
        call.finish()
        assert isinstance(mismatch, MismatchError)
        return mismatch

    def trace(
        self, sent: Sequence[tuple[int, int]], events: Sequence[_core.CallEvent]
    ) -> None:
        """Record the messages and events of a call."""
        stats = self.stats
        if stats.sent is not None:
            stats.sent.extend(sent)
        if stats.trace is None:
            return
        shift = self._transport.now() - time.perf_counter()  # of another clock
        shift = shift if abs(shift) > CLOCK_SECONDS else 0.0
        for e in events:
            fields = {"peer": e.peer, "bytes": e.nbytes, "round": e.round, "nnz": e.nnz}
            args = {name: value for name, value in fields.items() if value >= 0}
            stats.trace.add(e.phase, e.start + shift, e.end + shift, args)

    def count_native(self, nbytes: int) -> None:
        """Count the bytes of the engine's own allreduce of a vector."""
        algorithm, link = self._transport.nodes.native_algorithm, self._link
        self.stats.count_native(int(native_nbytes(algorithm, link.rank, link.size, nbytes)))

    def restore(self) -> None:
        """Restore what described the call."""
        self._transport.operation = self._state
        self._transport.input_summary = ""
        self._transport.longest_message = PHYSICAL_MEMORY

    def fail(self, error: BaseException) -> None:
        """Report an error to all ranks, and forget the messages of the call."""
        self._is_waiting = False
        self._sending, self._expected = [], []
        self._transport.abort(error)

    def _call(self) -> Call:
        """Return the current call, for the checks of its messages."""
        current = self.calls.current
        shape = None if current.x is None else _shape(current.x)
        name, op = current.identity.name, current.identity.op
        return Call(self._link, name, op, current.sequence, shape, current.quantizer)

    def _describe(self) -> None:
        """Describe the call and its input, for errors and the reports to other ranks."""
        current, transport = self.calls.current, self._transport
        if current.x is not None:
            encoding = "" if current.quantizer is None else f", {current.quantizer}"
            shape = _shape(current.x)
            transport.input_summary = f"{shape}, {current.identity.op}{encoding}"
            transport.longest_message = shape.longest_message(transport.size)

    def _action(self, peer: int, action: int) -> str:
        return ACTIONS[action].format(self._link.global_rank(peer))


def _shape(x: Stream | Values) -> Shape:
    return Shape.of(x) if isinstance(x, Stream) else Shape(x.size, 1, x.dtype)


def open_channel(link: CountingTransport) -> _core.Channel | None:
    """Return what moves compiled messages, or None if Python must run all collectives."""
    transport = link.transport
    if transport.is_simulated or transport.engine not in ENGINES or link.size == 1:
        return None
    if transport.engine != "mpi":
        return _core.host_channel(link.rank, link.size)
    mpi = transport.functions()
    if mpi is None:
        return None
    policy = wait_policy(transport)
    types = [mpi.types[dtype.str] for dtype in DTYPE_CODES]
    return _core.mpi_channel(
        link.rank,
        link.size,
        mpi.handle_bytes,
        mpi.functions,
        [*mpi.handles, *types, *(mpi.ops[op] for op in OPS)],
        mpi.any_source,
        mpi.any_tag,
        mpi.tag_at,
        transport.segment_bytes,
        PACED_BYTES if len(transport.nodes.leaders) > 1 else 0,
        policy.spin,
        policy.yield_,
    )
