"""Checks that a received message belongs to the call that this rank is in."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import wire
from ..errors import MismatchError, WireError
from .base import call_code, call_name, call_op, reduces_vectors

if TYPE_CHECKING:
    from ..observe import CountingTransport
    from ..stream import Stream
    from ..transport import Message


@dataclass(frozen=True)
class Shape:
    """Properties of a vector that must be the same on all ranks."""

    blocks: int
    block: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, x: Stream | wire.Header) -> Shape:
        """Return the shape of a stream, or of the stream in a message."""
        return cls(x.blocks, x.block, x.dtype)

    def longest_message(self, ranks: int) -> int:
        """Return the bytes of the longest message of a call, as in `cpp/messages/call.h`."""
        item = np.dtype(self.dtype).itemsize
        return ranks * (4096 + 2 * item * self.blocks * self.block)

    def __str__(self) -> str:
        block = f" in blocks of {self.block}" if self.block > 1 else ""
        return f"size {self.blocks * self.block}{block}, {self.dtype}"


class MessageChecks:
    """Identity of a call, and the checks of its messages.

    Args:
        transport: Counting transport of the communicator.
        collective: Name of the collective.
        op: Operation, as the caller names it.
        sequence: Sequence number of the call.
        shape: Shape of the vector; None if ranks may differ.
    """

    def __init__(
        self,
        transport: CountingTransport,
        collective: str,
        op: str,
        sequence: int,
        shape: Shape | None,
    ) -> None:
        self._transport = transport
        self.rank, self.size = transport.rank, transport.size
        self._op_name = op
        self._code = call_code(collective, op)
        self._sequence = sequence
        self._shape = shape
        self._label = f"{collective} #{sequence}"

    def name(self, rank: int | None = None) -> str:
        """Return the name of a rank in error messages; of this rank by default."""
        return f"rank {self._transport.global_rank(self.rank if rank is None else rank)}"

    def verify(self, message: Message, source: int) -> wire.Header:
        """Return the header of a message after checking its call and its checksum."""
        with self.decoding_from(source):
            self.check(wire.Header.read(message), source)
            return wire.verify(message)

    def decoding_from(self, source: int) -> AbstractContextManager[None]:
        """Return a context that adds the sending rank to wire errors."""
        return _DecodingFrom(self, source)

    def malformed(self, source: int, error: WireError) -> WireError:
        """Return a wire error that names the sending rank and the call."""
        return WireError(
            f"{self.name()} received a malformed message from {self.name(source)} in "
            f"{self._label}: {error}"
        )

    def check(self, header: wire.Header, source: int) -> None:
        """Raise unless a message belongs to this call."""
        expected = (self._code, self._sequence & 0xFFFFFFFF)
        if (header.tag.call, header.tag.sequence) == expected:
            return
        # If `auto` selected different algorithms for different vectors, report the vectors.
        same_number = header.tag.sequence == expected[1]
        reducing = reduces_vectors(header.tag.call) and reduces_vectors(self._code)
        if same_number and reducing and call_op(header.tag.call) == self._op_name:
            self._check_shape(header, source)
        raise MismatchError(
            f"{self.name()} is in call {self._sequence}, {call_name(self._code)}, but "
            f"{self.name(source)} is in call {header.tag.sequence}, "
            f"{call_name(header.tag.call)}; all ranks must make the same calls in the same "
            f"order"
        )

    def _read_header(self, message: Message, source: int, round: int) -> wire.Header:
        header = wire.Header.read(message)
        self.check(header, source)
        if header.tag.round != round & 0xFF:
            raise MismatchError(
                f"{self.name()} is in round {round} of {self._label}, but "
                f"{self.name(source)} is in round {header.tag.round}"
            )
        self._check_shape(header, source)
        return header

    def different_quantizers(
        self, rank: int, quantizer: str, other_rank: int, other: str
    ) -> MismatchError:
        """Return the error for two ranks with different quantizers."""
        return MismatchError(
            f"{self.name(rank)} has quantize={quantizer}, but {self.name(other_rank)} has "
            f"quantize={other}, in {self._label}; all ranks must pass the same quantizer"
        )

    def _check_shape(self, header: wire.Header, source: int) -> None:
        if self._shape is not None and Shape.of(header) != self._shape:
            raise MismatchError(
                f"{self.name()} has {self._shape}, but {self.name(source)} has "
                f"{Shape.of(header)}, in {self._label}; all ranks must reduce vectors of "
                f"the same size, block and dtype"
            )


class _DecodingFrom(AbstractContextManager[None]):
    """A class because generators are slower, and every message enters this context."""

    def __init__(self, call: MessageChecks, source: int) -> None:
        self._call, self._source = call, source

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, WireError):
            raise self._call.malformed(self._source, error) from None
