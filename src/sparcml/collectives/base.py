"""What a collective sees: one call on one rank, with streams going in and out.

A collective is a function `(call, stream) -> stream` that reads like the paper. The call
codes what is sent, checks what arrives, and counts both. Rounds number the messages of
a call, so that two ranks that are not at the same point notice.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import wire
from ..costs.workload import MADE_DENSE
from ..errors import MismatchError, WireError
from ..stream import MEAN, OPS, Stream, add, add_many, identity
from ..stream.densify import densify
from ..stream.reduction import add_into
from ..transport import SubgroupTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ..quantize import Quantizer
    from ..stream.stream import Values
    from ..transport import CountingTransport, Message, Nodes, Pending

# What the `call` byte of a message says: the collective in the upper five bits, and the
# operation in the lower three.
COLLECTIVES = (
    "agree",
    "allgather",
    "broadcast",
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "native",
    "reduce",
    "reduce_scatter",
    "master",
    "sharded",
    "ring",
    "recursive_double",
    "halving_doubling",
    "double_binary_tree",
    "ssar_ring",
    "barrier",
    "oktopk",
    "hierarchical",
)

SAID = (*OPS, MEAN)  # operations, as callers name them


def call_code(collective: str, op: str) -> int:
    """The `call` byte."""
    return COLLECTIVES.index(collective) << 3 | SAID.index(op)


def call_name(code: int) -> str:
    """The `call` byte in words, for error messages."""
    collective, op = code >> 3, code & 7
    if collective >= len(COLLECTIVES) or op >= len(SAID):
        return f"unknown call {code}"
    return f"{COLLECTIVES[collective]} ({SAID[op]})"


def call_op(code: int) -> str | None:
    """The operation in a `call` byte, if it names one."""
    return SAID[code & 7] if code & 7 < len(SAID) else None


@dataclass(frozen=True)
class Shape:
    """What all ranks must agree on."""

    blocks: int
    block: int
    dtype: object

    @classmethod
    def of(cls, x: Stream | wire.Header) -> Shape:
        """Of a stream or of a message."""
        return cls(x.blocks, x.block, x.dtype)

    def __str__(self) -> str:
        block = f" in blocks of {self.block}" if self.block > 1 else ""
        return f"size {self.blocks * self.block}{block}, {self.dtype}"


class Call:
    """One collective call on one rank."""

    def __init__(
        self,
        link: CountingTransport,
        collective: str,
        op: str,
        sequence: int,
        shape: Shape | None,
        quantizer: Quantizer | None = None,
        persistent: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self._link = link
        self.rank, self.size = link.rank, link.size
        self.op = "sum" if op == MEAN else op  # a mean is a sum, divided at the end
        self._said = op
        self._code = call_code(collective, op)
        self._sequence = sequence
        self._shape = shape  # of the whole vector; None where ranks may differ
        self.quantizer = quantizer
        self._seed = (
            sequence if seed is None else seed
        )  # of what is random in the quantizer
        self.persistent = {} if persistent is None else persistent  # outlives the call
        self.wants_seen = False  # whether the caller will ask for what follows
        self.seen: list[Stream] = []  # what each owner of a range used of this rank's part
        self.edges: Sequence[int] = ()  # of these ranges
        self._leaving: list[Pending] = []
        self._name = f"{collective} #{sequence}"

    @property
    def nodes(self) -> Nodes:
        """Who shares a node; of all ranks, also where the call is between some of them."""
        return self._link.transport.nodes

    def subgroup(self, ranks: Sequence[int], first: int = 0) -> Call:
        """The same call between some of its ranks, which count from 0 there.

        Traces number its rounds from `first` on.
        """
        part = copy(self)  # what leaves there, leaves here
        part._link = SubgroupTransport(self._link, ranks, first)
        part.rank, part.size = part._link.rank, part._link.size
        return part

    def add(self, a: Stream, b: Stream) -> Stream:
        """A op b."""
        with self._link.stats.phase("add", nnz=a.nnz + b.nnz):
            self._added(a, b)
            return add(a, b, self.op)

    def add_into(self, out: Stream, a: Stream, b: Stream) -> None:
        """A op b of dense streams, to where `out` has its values (it may be one of them)."""
        with self._link.stats.phase("add", nnz=a.nnz + b.nnz):
            self._added(a, b)
            add_into(out, a, b, self.op)

    def add_many(self, streams: Sequence[Stream]) -> Stream:
        """All of them, in this order."""
        with self._link.stats.phase("add", nnz=sum(s.nnz for s in streams)):
            self._added(*streams)
            return add_many(streams, self.op)

    def _added(self, *streams: Stream) -> None:
        """Sparse entries are merged; of dense vectors, all but one are written over it."""
        if not self._link.transport.is_simulated:
            return
        sparse = sum(s.nnz for s in streams if not s.is_dense)
        dense = [s.blocks for s in streams if s.is_dense]
        self.charge(merged=sparse, written=sum(dense[1:]))

    def densify(self, x: Stream) -> Stream:
        """The dense form, ours to overwrite."""
        if not x.is_dense:
            self.charge(written=MADE_DENSE * x.blocks)
        return densify(x)

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        """Say what was computed: in a simulation the time for it passes."""
        self._link.transport.charge(encoded=encoded, merged=merged, written=written)

    def selecting(self, x: Stream) -> AbstractContextManager[object]:
        """Time what is spent on choosing among the entries of x."""
        return self._link.stats.phase("select", nnz=x.nnz)

    def send(self, peer: int, stream: Stream, turn: int, *, see: bool = True) -> Stream:
        """Start sending; what the peer will see comes back."""
        message, seen = self.encode(stream, turn, see=see, owner=peer)
        self.send_message(peer, message, turn)
        return seen

    def receive(self, peer: int, turn: int, blocks: int | None = None) -> Stream:
        """The peer's stream of this round: the whole vector, or a range of `blocks`."""
        return self.decode(self.receive_message(peer, turn), peer, turn, blocks)

    def exchange(self, peer: int, stream: Stream, turn: int) -> tuple[Stream, Stream]:
        """Both send, both receive: (what the peer saw of mine, the peer's)."""
        arriving = self._link.irecv(peer)
        seen = self.send(peer, stream, turn)
        return seen, self.decode(self._link.finish(arriving, turn), peer, turn)

    def encode(
        self,
        stream: Stream,
        turn: int,
        *,
        see: bool = True,
        summed: bool = False,
        owner: int | None = None,
    ) -> tuple[Message, Stream]:
        """A message of this call and round, and what its readers will see.

        Finding that out means decoding what a quantizer has coded; without `see`, the
        stream itself comes back. What is `summed` over all ranks may be coded otherwise.
        `owner` is who gets it, if not all do.
        """
        with self._link.stats.phase("encode", round=turn, nnz=stream.nnz):
            tag = wire.Tag(self._code, self._sequence, turn)
            whole = None if self._shape is None else self._shape.blocks
            # Other calls, ranks, ranges and rounds draw other random numbers; a repeat the
            # same.
            seed = mixed(self._seed, self.rank, self.rank if owner is None else owner, turn)
            quantizer = self.quantizer
            if quantizer is not None and summed:
                quantizer = quantizer.for_reduced(self.size)
            return wire.encode(stream, tag, quantizer, whole=whole, seed=seed, see=see)

    def decode(
        self,
        message: Message,
        source: int,
        turn: int,
        blocks: int | None = None,
        *,
        as_held: bool = True,
    ) -> Stream:
        """The stream in a message, after checking that it belongs here."""
        with self._decoding(message, source, turn), self.decoding_from(source):
            header = self._opened(message, source, turn)
            if source != self.rank:
                self._coded(header)
            fill = identity(self.op)
            return wire.decode(message, fill, header=header, blocks=blocks, as_held=as_held)

    def decode_into(
        self,
        whole: Stream,
        start: int,
        blocks: int,
        message: Message,
        source: int,
        turn: int,
    ) -> None:
        """The same, straight into a range of a dense stream."""
        with self._decoding(message, source, turn), self.decoding_from(source):
            header = self._opened(message, source, turn)
            if source != self.rank:
                self._coded(header)
                self.charge(written=blocks)
            wire.decode_into(whole, start, message, header, blocks)

    def _coded(self, header: wire.Header) -> None:
        """What a message took, at its sender too: values without gaps are only copied."""
        if not header.index_bytes:
            self.charge(written=2 * header.nnz)
        else:
            self.charge(encoded=header.nnz)

    def _decoding(
        self, message: Message, source: int, turn: int
    ) -> AbstractContextManager[object]:
        about = {"round": turn, "peer": source, "bytes": len(message)}
        return self._link.stats.phase("decode", **about)

    def _opened(self, message: Message, source: int, turn: int) -> wire.Header:
        header = wire.Header.read(message)
        self.check(header, source)
        self._check_round(header, source, turn)
        self._check_shape(header, source)
        return header

    def decoding_from(self, source: int) -> AbstractContextManager[None]:
        """Whoever finds bytes that are no stream says whose they are."""
        return _Reading(self, source)

    def malformed(self, source: int, error: WireError) -> WireError:
        """What to say of such bytes."""
        return WireError(
            f"{self.name()} got bytes from {self.name(source)} that are no stream, in "
            f"{self._name}: {error}"
        )

    def verify(self, message: Message, source: int) -> wire.Header:
        """The header of a whole message of this call, checksum and all."""
        with self.decoding_from(source):
            self.check(wire.Header.read(message), source)
            return wire.verify(message)

    def name(self, rank: int | None = None) -> str:
        """What to call a rank, this one by default."""
        return f"rank {self._link.global_rank(self.rank if rank is None else rank)}"

    def header_only(
        self, x: Stream, auxiliary: NDArray[Any] | None = None, turn: int = 0
    ) -> Message:
        """A message that says what x is, with some numbers instead of its entries."""
        return wire.header_only(x, wire.Tag(self._code, self._sequence, turn), auxiliary)

    def native(self, array: Values) -> Values:
        """The engine's own dense allreduce."""
        self._link.stats.count_native(2 * (self.size - 1) * array.nbytes // self.size)
        with self._link.stats.phase("wait"):
            return self._link.transport.native_allreduce(array, self.op)

    def send_message(self, peer: int, message: Message, turn: int | None = None) -> None:
        """Start sending bytes that are coded already."""
        # What has left gives its memory back, which the next message can use.
        self._leaving[:] = [pending for pending in self._leaving if not pending.poll()]
        self._leaving.append(self._link.isend(peer, message, turn))

    def receive_message(self, peer: int, turn: int | None = None) -> Message:
        """The next bytes of that peer, still coded."""
        return self._link.finish(self._link.irecv(peer), turn)

    def arrivals(
        self, peers: Sequence[int], turn: int | None = None
    ) -> Iterator[tuple[int, Message]]:
        """(peer, its next bytes) in this order, while all arrive; one may come twice."""
        pendings = [self._link.irecv(peer) for peer in peers]
        return zip(peers, self._link.finish_each(pendings, turn), strict=True)

    def finish(self) -> None:
        """Wait until everything sent has left."""
        for pending in self._leaving:
            self._link.finish(pending)
        self._leaving.clear()

    def check(self, got: wire.Header, source: int) -> None:
        """Raise unless a message belongs to this call."""
        here = (self._code, self._sequence & 0xFFFFFFFF)
        if (got.tag.call, got.tag.sequence) == here:
            return
        # With another vector, `auto` may be in another algorithm: the vector is the cause.
        if got.tag.sequence == here[1] and call_op(got.tag.call) == self._said:
            self._check_shape(got, source)
        raise MismatchError(
            f"{self.name()} is in call {self._sequence}, {call_name(self._code)}, but "
            f"{self.name(source)} is in call {got.tag.sequence}, {call_name(got.tag.call)}: all "
            f"ranks must make the same calls in the same order"
        )

    def _check_round(self, got: wire.Header, source: int, turn: int) -> None:
        if got.tag.round != turn & 0xFF:
            raise MismatchError(
                f"{self.name()} is in round {turn} of {self._name}, but {self.name(source)} "
                f"is in round {got.tag.round}"
            )

    def _check_shape(self, got: wire.Header, source: int) -> None:
        if self._shape is not None and Shape.of(got) != self._shape:
            raise MismatchError(
                f"{self.name()} has {self._shape}, but {self.name(source)} has "
                f"{Shape.of(got)}, in {self._name}: all ranks must reduce vectors of the "
                f"same size, block and dtype"
            )


def mixed(*numbers: int) -> int:
    """One seed out of several, another for any other choice: FNV-1a over 64-bit words."""
    seed = 0xCBF29CE484222325
    for number in numbers:
        seed = ((seed ^ number % 2**64) * 0x100000001B3) % 2**64
    return seed


class _Reading(AbstractContextManager[None]):
    """Not a generator: every message has one, and they are slow."""

    def __init__(self, call: Call, source: int) -> None:
        self._call, self._source = call, source

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, WireError):
            raise self._call.malformed(self._source, error) from None
