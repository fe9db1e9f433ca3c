"""Collectives whose rounds run in one compiled call, without Python between the messages.

`cpp/messages` has the loops. Each equals its definition in this folder bit for bit and message
for message, so that ranks of both kinds can take part in one call. The loop looks for control
messages every millisecond of waiting. It returns to Python to read them, every 10 ms of waiting
to check timeouts, and to raise the errors of messages: by the checks of `Call`, on the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import _core
from ..operations import OPS
from ..stream import MEAN, Stream
from ..stream.densify import densify
from ..transport.timeouts import wait_policy
from ..wire.header import DTYPE_CODES
from . import numbers
from .base import AGREEMENT, call_code
from .compiled_native import NativeAllreduce
from .compiled_quantized import QuantizedAllreduce
from .loop_host import LoopHost, arrays_of

if TYPE_CHECKING:
    from ..observe import CountingTransport
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport import Message
    from ..transport.mpi_functions import MpiFunctions
    from .numbers import Number

ALGORITHMS = {
    "ssar_recursive_double": 3,
    "ssar_split_allgather": 4,
    "dsar_split_allgather": 5,
    "ssar_ring": 15,
}
OP_NUMBERS = {op: number for number, op in enumerate(OPS)} | {MEAN: 0}
ENGINES = ("mpi", "threads", "torch")
PACED_BYTES = 32 << 10  # of a segment of an exchange between nodes; MPI sends it at once
FLOAT32 = DTYPE_CODES[np.dtype(np.float32)]


class CompiledCollectives(LoopHost):
    """The compiled collectives of one communicator.

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
        super().__init__(link, loop)
        self._native = None if mpi is None else NativeAllreduce(self, link, loop, mpi)
        self._quantized = QuantizedAllreduce(self, link, loop)
        self._codes: dict[tuple[str, str], int] = {}

    def allreduce(self, algorithm: str, op: str, sequence: int, x: Stream) -> Stream:
        """Return the result of an allreduce; a mean is a sum that the caller divides."""
        self.current = (algorithm, op, sequence, x)
        values, block = x.raw_values, x.block
        dtype = values.dtype
        returned = self.loop.allreduce(
            self,
            self._code(algorithm, op),
            sequence & 0xFFFFFFFF,
            self.is_traced(),
            ALGORITHMS[algorithm],
            OP_NUMBERS[op],
            DTYPE_CODES[dtype],
            x.size // block,
            block,
            x.raw_indices,
            values,
        )
        self.count(returned)
        indices, result = arrays_of(returned[0], dtype, block)
        return Stream.unchecked(x.size, indices, result, block, x.fill, scratch=True)

    def prepare(
        self,
        calls: _core.PreparedCalls,
        asked: str,
        name: str,
        choice: object,
        x: Stream,
        predicted: float,
    ) -> None:
        """Prepare sums like one that was made, see `Session.prepare`."""
        if name in ALGORITHMS and x.fill == 0.0:
            dtype = x.raw_values.dtype
            code = self._code(name, "sum")
            number, type_ = ALGORITHMS[name], DTYPE_CODES[dtype]
            calls.prepare(
                asked,
                dtype,
                x.size,
                x.block,
                name,
                choice,
                code,
                number,
                type_,
                x.nnz,
                predicted,
            )

    def has(self, algorithm: str, op: str, dtype: np.dtype[Any]) -> bool:
        """Return whether an allreduce is compiled."""
        if algorithm == "native":
            return self._native is not None and self._native.has(op, dtype)
        return algorithm in ALGORITHMS

    def has_quantized(self, algorithm: str, quantizer: Quantizer) -> bool:
        """Return whether an allreduce is compiled for a quantizer."""
        return self._quantized.has(algorithm, quantizer)

    def quantized(
        self,
        algorithm: str,
        op: str,
        sequence: int,
        x: Stream,
        quantizer: Quantizer,
        seed: int | None,
        wants_seen: bool,
    ) -> tuple[Stream, Stream | None]:
        """Return the result of a quantized allreduce, and this rank's part if wanted."""
        self.current = (algorithm, op, sequence, x)
        self._quantizer = quantizer
        found = self._quantized.run(
            algorithm, op, OP_NUMBERS[op], sequence, x, quantizer, seed, wants_seen
        )
        self._quantizer = None
        return found

    def native(self, algorithm: str, op: str, sequence: int, x: Stream) -> Stream:
        """Return the result of the engine's own allreduce, after an agreement."""
        assert self._native is not None
        self.current = (algorithm, op, sequence, x)
        values = densify(x).raw_values
        out = self._native.run(op, sequence, values, x.block, agree=False)
        assert isinstance(out, np.ndarray)
        return Stream.unchecked(x.size, None, out, x.block, x.fill, scratch=True)

    def native_array(
        self, op: str, sequence: int, values: Values
    ) -> Values | list[Message]:
        """Agree on an array and reduce it with the numbers `sequence` and the next one."""
        assert self._native is not None
        self.current = (AGREEMENT, op, sequence, values)
        return self._native.run(op, sequence, values, agree=True)

    def allgather(
        self, name: str, op: str, sequence: int, x: Stream | Number
    ) -> list[Stream | Number]:
        """Return the streams or numbers of all ranks by rank, see `allgather.allgather`."""
        items = self._gather(name, op, sequence, x, None)
        assert items is not None
        return items

    def allgather_add(
        self, name: str, op: str, sequence: int, added: tuple[Stream, Values]
    ) -> list[Stream | Number] | None:
        """Add the streams of all ranks to an array, or return them if their shapes differ."""
        return self._gather(name, op, sequence, *added)

    def add_from(
        self, state: _core.CallState, source: _core.VectorSource, out: Values
    ) -> list[Stream | Number] | None:
        """Add all vectors of all ranks' sources to an array, each as `allgather_add` does.

        Returns:
            None, or the vectors of a call in which their shapes differ.
        """
        code = self._code("allgather", "sum")
        returned = self.loop.add_from(self, code, state, source, out)
        self.count(returned)
        return (
            None if returned[0] is None else self._items(returned[0], out.dtype, out.size)
        )

    def _gather(
        self, name: str, op: str, sequence: int, x: Stream | Number, out: Values | None
    ) -> list[Stream | Number] | None:
        self.current = (name, op, sequence, None)
        shaped = x if isinstance(x, Stream) else numbers.DESCRIBED
        dtype, size, block = shaped.raw_values.dtype, shaped.size, shaped.block
        message, indices, values = None, shaped.raw_indices, shaped.raw_values
        if x is not shaped or indices is None or shaped.fill != 0:
            message = numbers.encode(self.call(), x, 0)  # bounded, see `wire.encode`
        returned = self.loop.allgather(
            self,
            self._code(name, op),
            sequence & 0xFFFFFFFF,
            self.is_traced(),
            DTYPE_CODES[dtype],
            size // block,
            block,
            message,
            indices,
            values,
            out,
        )
        self.count(returned)
        if returned[0] is None:
            return None
        return self._items(returned[0], dtype, size, block, shaped.fill)

    def _items(
        self,
        found: list[Any],
        dtype: np.dtype[Any],
        size: int,
        block: int = 1,
        fill: float = 0.0,
    ) -> list[Stream | Number]:
        """Return the vectors and numbers of all ranks that the loop has gathered."""
        items: list[Stream | Number] = []
        for rank, item in enumerate(found):
            if isinstance(item, bytes):
                received = np.frombuffer(item, np.uint8)
                items.append(numbers.decode(self.call(), received, rank, 0))
            else:
                indices, values = arrays_of(item, dtype, block)
                stream = Stream.unchecked(size, indices, values, block, fill, scratch=True)
                items.append(stream)
        return items

    def barrier(self, name: str, op: str, sequence: int, x: None) -> None:
        """Wait for all ranks."""
        self.current = (name, op, sequence, x)
        code = self._code(name, op)
        traced = self.is_traced()
        self.count(self.loop.barrier(self, code, sequence & 0xFFFFFFFF, traced, FLOAT32))

    def agree(
        self, op: str, sequence: int, x: Stream, round: int
    ) -> tuple[int, ...] | list[Message]:
        """Return the nnz of all ranks, or their headers if these differ."""
        self.current = (AGREEMENT, op, sequence, x)
        returned = self.loop.agree(
            self,
            self._code(AGREEMENT, op),
            sequence & 0xFFFFFFFF,
            self.is_traced(),
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
        PACED_BYTES if len(transport.nodes.leaders) > 1 else 0,
        policy.spin,
        policy.yield_,
    )
    return CompiledCollectives(link, loop, mpi)
