"""Split algorithms whose values QSGD quantizes, in one compiled call.

`cpp/messages/quantization.h` has the format of the values. A call equals its definition bit for
bit and message for message.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..quantize import QSGD
from ..quantize.base import SEEDS
from ..stream import Stream, add, difference, join, range_offsets
from ..wire.header import DTYPE_CODES
from .base import call_code
from .loop_host import arrays_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernels import _core
    from ..observe import CountingTransport
    from ..quantize import Quantizer
    from .loop_host import LoopHost

ALGORITHMS = {"ssar_split_allgather": 4, "dsar_split_allgather": 5}


class QuantizedAllreduce:
    """The quantized allreduces of one communicator.

    Args:
        host: What the loop asks of Python.
        link: Counting transport of the communicator.
        loop: The compiled loop.
    """

    def __init__(
        self, host: LoopHost, link: CountingTransport, loop: _core.MessageLoop
    ) -> None:
        self._host, self._link, self._loop = host, link, loop

    @staticmethod
    def has(algorithm: str, quantizer: Quantizer) -> bool:
        """Return whether an allreduce is compiled for a quantizer."""
        is_packed = type(quantizer) is QSGD and quantizer.coder is None
        return is_packed and algorithm in ALGORITHMS

    def run(
        self,
        algorithm: str,
        op: str,
        number: int,
        sequence: int,
        x: Stream,
        quantizer: Quantizer,
        seed: int | None,
        wants_seen: bool,
    ) -> tuple[Stream, Stream | None]:
        """Return the result, and this rank's part of it if that is wanted.

        Args:
            algorithm: A name of `ALGORITHMS`.
            op: Operation, as the caller names it.
            number: Number of the operation in the loop.
            sequence: Sequence number of the call.
            x: Vector of this rank.
            quantizer: Encodes the values of messages.
            seed: Seed of the quantizer; the sequence number by default.
            wants_seen: Whether the caller asked for its part.
        """
        returned = self._loop.allreduce_quantized(
            self._host,
            call_code(algorithm, op),
            sequence & 0xFFFFFFFF,
            self._host.is_traced(),
            ALGORITHMS[algorithm],
            number,
            DTYPE_CODES[x.dtype],
            x.blocks,
            x.block,
            x.raw_indices,
            x.raw_values,
            quantizer.settings,
            quantizer.for_reduced(self._link.size).settings,
            (sequence if seed is None else seed) % SEEDS,
            wants_seen,
        )
        self._host.count(returned)
        found, parts = returned[0]
        result = _stream(x, x.blocks, found, scratch=True)
        return result, None if parts is None else self._seen(x, parts)

    def _seen(self, x: Stream, found: Sequence[tuple[int, Any, Any]]) -> Stream:
        """Return this rank's part of the result, see `split.encode_range`."""
        offsets = range_offsets(x.blocks, self._link.size)
        own, spans = self._link.rank, [end - start for start, end in pairwise(offsets)]
        parts = [_stream(x, *part) for part in zip(spans, found, strict=False)]
        reduced, decoded = (_stream(x, spans[own], part) for part in found[-2:])
        parts[own] = add(parts[own], difference(decoded, reduced))
        return join(parts, offsets)


def _stream(
    x: Stream, blocks: int, found: tuple[int, Any, Any], scratch: bool = False
) -> Stream:
    indices, values = arrays_of(found, x.dtype, x.block)
    size = blocks * x.block
    return Stream.unchecked(size, indices, values, x.block, x.fill, scratch=scratch)
