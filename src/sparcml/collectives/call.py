"""One collective call on one rank, as a collective algorithm sees it.

A collective is a function `(call, stream) -> stream` that reads like the paper's
pseudo-code. The call object encodes what is sent, decodes and checks what is received, and
counts and times both. Each message carries the sequence number of the call and the number
of its round, so that ranks in different calls or rounds are detected.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from .. import wire
from ..costs.workload import DENSIFY_WRITES, native_nbytes
from ..observe import SendsInTurn, SubgroupTransport
from ..quantize.code import mix_seed
from ..stream import MEAN, Stream, add, add_many, identity
from ..stream.densify import densify
from ..stream.reduction import add_into, weighted_sum
from .checks import MessageChecks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from ..observe import CountingTransport
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from ..transport import Message, Nodes, Pending
    from .checks import Shape


class Call(MessageChecks):
    """One collective call on one rank.

    Args:
        transport: Counting transport of the communicator.
        collective: Name of the collective.
        op: Operation, as the caller names it.
        sequence: Sequence number of the call.
        shape: Shape of the vector; None if ranks may differ.
        quantizer: Encodes the values of messages.
        persistent: State that collectives keep between calls.
        seed: Seed of the quantizer; the sequence number by default.

    Attributes:
        rank: This rank.
        size: World size.
        op: Operation that streams are reduced by: sum for a mean.
        wants_seen: Whether the caller asked for `seen`.
        seen: For each owner of a range, this rank's part as the owner received it.
        offsets: Offsets of these ranges.
    """

    def __init__(
        self,
        transport: CountingTransport,
        collective: str,
        op: str,
        sequence: int,
        shape: Shape | None,
        quantizer: Quantizer | None = None,
        persistent: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(transport, collective, op, sequence, shape)
        self.op = "sum" if op == MEAN else op  # the caller divides the result
        self.quantizer = quantizer
        self._seed = sequence if seed is None else seed
        self.persistent = {} if persistent is None else persistent
        self.wants_seen = False
        self.seen: list[Stream] = []
        self.offsets: Sequence[int] = ()
        self._sending: list[Pending] = []

    @property
    def nodes(self) -> Nodes:
        """Placement of all ranks on nodes, also within a subgroup."""
        return self._transport.transport.nodes

    def subgroup(self, ranks: Sequence[int], first_round: int = 0) -> Call:
        """Return the same call among some of its ranks, renumbered from 0.

        Args:
            ranks: Ranks of the subgroup, in their order.
            first_round: Number of the subgroup's first round in traces.
        """
        part = copy(self)  # shares the list of messages that are being sent
        part._transport = SubgroupTransport(self._transport, ranks, first_round)
        part.rank, part.size = part._transport.rank, part._transport.size
        return part

    # Reduction

    def add(self, a: Stream, b: Stream) -> Stream:
        """Return `a op b`."""
        with self._transport.stats.phase("add", nnz=a.nnz + b.nnz):
            self._charge_reduction(a, b)
            return add(a, b, self.op)

    def add_into(self, out: Stream, a: Stream, b: Stream) -> None:
        """Write `a op b` of dense streams to `out`, which may be one of them."""
        with self._transport.stats.phase("add", nnz=a.nnz + b.nnz):
            self._charge_reduction(a, b)
            add_into(out, a, b, self.op)

    def add_many(self, streams: Sequence[Stream]) -> Stream:
        """Reduce several streams in the given order."""
        with self._transport.stats.phase("add", nnz=sum(s.nnz for s in streams)):
            self._charge_reduction(*streams)
            return add_many(streams, self.op)

    def weighted_sum(self, weights: Sequence[float], streams: Sequence[Stream]) -> Stream:
        """Return the weighted sum of streams, added in the given order."""
        with self._transport.stats.phase("add", nnz=sum(s.nnz for s in streams)):
            merged = sum(s.nnz for s in streams if not s.is_dense)
            self.charge(merged=merged, written=sum(s.blocks for s in streams if s.is_dense))
            return weighted_sum(weights, streams)

    def densify(self, x: Stream) -> Stream:
        """Return x as a dense stream that may be overwritten."""
        if not x.is_dense:
            self.charge(written=DENSIFY_WRITES * x.blocks)
        return densify(x)

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        """Charge work to the clock of a simulation; see `costs.workload.Round`."""
        self._transport.transport.charge(encoded=encoded, merged=merged, written=written)

    def _charge_reduction(self, *streams: Stream) -> None:
        if not self._transport.transport.is_simulated:
            return
        sparse = sum(s.nnz for s in streams if not s.is_dense)
        dense = [s.blocks for s in streams if s.is_dense]  # the first is only copied
        self.charge(merged=sparse, written=sum(dense[1:]))

    def time_selection(self, x: Stream) -> AbstractContextManager[object]:
        """Return a context that counts its time as selection among the entries of x."""
        return self._transport.stats.phase("select", nnz=x.nnz)

    def time_adding(self, x: Stream) -> AbstractContextManager[object]:
        """Return a context that counts its time as the addition of vectors like x."""
        return self._transport.stats.phase("add", nnz=self.size * x.nnz)

    # Streams

    def send(self, peer: int, stream: Stream, round: int, *, see: bool = True) -> Stream:
        """Start sending a stream, and return it as the peer will decode it."""
        message, seen = self.encode(stream, round, see=see, owner=peer)
        self.send_message(peer, message, round)
        return seen

    def receive(self, peer: int, round: int, blocks: int | None = None) -> Stream:
        """Receive the peer's stream: the full vector, or a range of `blocks`."""
        return self.decode(self.receive_message(peer, round), peer, round, blocks)

    def exchange(self, peer: int, stream: Stream, round: int) -> tuple[Stream, Stream]:
        """Exchange streams: return this one as the peer decodes it, and the peer's."""
        pending = self._transport.irecv(peer)
        seen = self.send(peer, stream, round)
        return seen, self.decode(self._transport.finish(pending, round), peer, round)

    def encode(
        self,
        stream: Stream,
        round: int,
        *,
        see: bool = True,
        reduced: bool = False,
        owner: int | None = None,
        bounded: bool = False,
    ) -> tuple[Message, Stream]:
        """Encode a stream as a message of this call, and return how it will be decoded.

        Args:
            stream: The stream.
            round: Round of the message.
            see: Whether to decode what the quantizer has encoded; the stream itself is
                returned otherwise.
            reduced: Whether the stream is reduced over all ranks, which some quantizers
                encode with other settings.
            owner: Receiving rank, unless all ranks receive the message.
            bounded: Whether receivers may not know the shape; see `wire.encode`.
        """
        with self._transport.stats.phase("encode", round=round, nnz=stream.nnz):
            tag = wire.Tag(self._code, self._sequence, round)
            whole = None if self._shape is None else self._shape.blocks
            # Different random numbers for each call, rank, range and round.
            owner = self.rank if owner is None else owner
            seed = mix_seed(self._seed, self.rank, owner, round)
            quantizer = self.quantizer
            if quantizer is not None and reduced:
                quantizer = quantizer.for_reduced(self.size)
            return wire.encode(
                stream, tag, quantizer, whole=whole, seed=seed, see=see, bounded=bounded
            )

    def encode_code(
        self, x: Stream, round: int, write: Callable[[int, Message], int]
    ) -> Message | None:
        """Encode a dense vector for all ranks by a function, see `wire.encode_code`."""
        assert self.quantizer is not None
        with self._transport.stats.phase("encode", round=round, nnz=x.size):
            tag = wire.Tag(self._code, self._sequence, round)
            seed = mix_seed(self._seed, self.rank, self.rank, round)
            return wire.encode_code(x, tag, self.quantizer, seed, write)

    def code_of(self, message: Message, source: int, round: int) -> Message | None:
        """Return the code of a checked message, or None, see `wire.code_of`."""
        with self._time_decoding(message, source, round), self.decoding_from(source):
            header = self._read_header(message, source, round)
            self._check_quantizer(header, message, source)
            return wire.code_of(message, header)

    def decode(
        self,
        message: Message,
        source: int,
        round: int,
        blocks: int | None = None,
        *,
        as_held: bool = True,
    ) -> Stream:
        """Decode a message after checking that it belongs to this call and round."""
        with self._time_decoding(message, source, round), self.decoding_from(source):
            header = self._read_header(message, source, round)
            self._check_quantizer(header, message, source)
            if source != self.rank:
                self._charge_encoding(header)
            fill = identity(self.op, header.dtype)
            if blocks is None and self._shape is not None:
                blocks = self._shape.blocks
            return wire.decode(message, fill, header=header, blocks=blocks, as_held=as_held)

    def decode_into(
        self,
        out: Stream,
        start: int,
        blocks: int,
        message: Message,
        source: int,
        round: int,
    ) -> None:
        """Decode a message into a range of a dense stream."""
        with self._time_decoding(message, source, round), self.decoding_from(source):
            header = self._read_header(message, source, round)
            self._check_quantizer(header, message, source)
            if source != self.rank:
                self._charge_encoding(header)
                self.charge(written=blocks)
            wire.decode_into(out, start, message, header, blocks)

    def header_only(
        self, x: Stream, auxiliary: NDArray[Any] | None = None, round: int = 0
    ) -> Message:
        """Return a header-only message that describes x, with an auxiliary payload."""
        return wire.header_only(x, wire.Tag(self._code, self._sequence, round), auxiliary)

    def _check_quantizer(self, header: wire.Header, message: Message, source: int) -> None:
        """Raise unless the values of a message are encoded as this rank encodes them."""
        own = self.quantizer
        if own is None and header.is_raw:
            return
        theirs = wire.quantizer_of(message, header)
        if own is not None and theirs is not None:
            forms = {(q.wire_format, q.settings) for q in (own, own.for_reduced(self.size))}
            if (theirs.wire_format, theirs.settings) in forms:
                return
        raise self.different_quantizers(self.rank, repr(own), source, repr(theirs))

    def _charge_encoding(self, header: wire.Header) -> None:
        # For both ends. Without indices the values are only copied.
        if not header.index_bytes:
            self.charge(written=2 * header.nnz)
        else:
            self.charge(encoded=header.nnz)

    def _time_decoding(
        self, message: Message, source: int, round: int
    ) -> AbstractContextManager[object]:
        return self._transport.stats.phase(
            "decode", round=round, peer=source, bytes=len(message)
        )

    # Messages

    def send_message(self, peer: int, message: Message, round: int | None = None) -> None:
        """Start sending an encoded message."""
        # Drop the messages that have been sent: the next one can reuse their memory.
        self._sending[:] = [pending for pending in self._sending if not pending.poll()]
        self._sending.append(self._transport.isend(peer, message, round))

    def exchange_messages(
        self,
        messages: Mapping[int, Message],
        peers: Sequence[int],
        round: int | None = None,
    ) -> Iterator[tuple[int, Message]]:
        """Send a message to each receiver, and yield those of peers as `arrivals` does."""
        pendings = [self._transport.irecv(peer) for peer in peers]
        sends, longest = None, max(map(len, messages.values()), default=0)
        if longest > (self._transport.transport.in_turn_bytes or longest):
            sends = SendsInTurn(self._transport, messages, round)
            self._sending.append(sends)
        else:
            for peer, message in messages.items():
                self.send_message(peer, message, round)
        found = self._transport.finish_each(pendings, round, sends)
        return zip(peers, found, strict=True)

    def receive_message(self, peer: int, round: int | None = None) -> Message:
        """Receive the next message of a peer without decoding it."""
        return self._transport.finish(self._transport.irecv(peer), round)

    def arrivals(
        self, peers: Sequence[int], round: int | None = None
    ) -> Iterator[tuple[int, Message]]:
        """Yield (peer, message) in the given order while all messages arrive.

        A peer may occur several times.
        """
        pendings = [self._transport.irecv(peer) for peer in peers]
        return zip(peers, self._transport.finish_each(pendings, round), strict=True)

    def finish(self) -> None:
        """Wait until all messages have been sent."""
        for pending in self._sending:
            self._transport.finish(pending)
        self._sending.clear()

    def native(self, array: Values) -> Values:
        """Return the result of the engine's own dense allreduce."""
        nbytes = native_nbytes(
            self.nodes.native_algorithm, self.rank, self.size, array.nbytes
        )
        self._transport.stats.count_native(int(nbytes))
        with self._transport.stats.phase("wait"):
            return self._transport.transport.native_allreduce(array, self.op)
