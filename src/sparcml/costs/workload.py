"""Declared cost of a collective: its messages, their entries, and the work of each rank.

Each algorithm declares, for every rank and round, the peers it sends to and the minimum,
expected and maximum number of entries per message. Byte counts follow from the wire
format. Tests compare the declared with the counted messages and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..transport import Nodes


# Values written per value of a sparse vector that is made dense: the operating system
# clears the new memory, then the fill value is written.
DENSIFY_WRITES = 2
SHORT_BYTES = 2048  # longest vector that MPICH reduces by recursive doubling


@dataclass(frozen=True)
class Workload:
    """Input of one allreduce.

    Attributes:
        blocks: Blocks of the vector; a vector without blocks has blocks of one value.
        entry_bytes: Bytes of one block's values on the wire.
        nnz: Nonzero blocks of every rank.
        nodes: Placement of the ranks on nodes; None if each rank has its own.
    """

    blocks: int
    entry_bytes: float
    nnz: tuple[int, ...]
    nodes: Nodes | None = None

    @property
    def ranks(self) -> int:
        """Return the world size."""
        return len(self.nnz)

    @property
    def is_dense(self) -> bool:
        """Whether the vectors of all ranks are full."""
        return min(self.nnz) == self.blocks

    @property
    def nbytes(self) -> float:
        """Bytes of a dense vector."""
        return self.blocks * self.entry_bytes

    @property
    def is_hierarchical(self) -> bool:
        """Whether there are several nodes, at least one of them with several ranks."""
        return self.nodes is not None and self.nodes.is_hierarchy


@dataclass(frozen=True)
class EntryCount:
    """Number of entries in one message that covers a range of `blocks`.

    The minimum holds unless values cancel: a dense vector is sent without its zeros.
    """

    min: int
    expected: float
    max: int
    blocks: int

    @property
    def is_dense(self) -> bool:
        """Whether the message is full and so has no indices to encode."""
        return self.expected >= self.blocks

    def part(self, blocks: int) -> EntryCount:
        """Return the count for `blocks` of the blocks, with entries spread evenly."""
        if blocks == self.blocks:
            return self
        return EntryCount(
            max(0, self.min - (self.blocks - blocks)),
            self.expected * blocks / self.blocks,
            min(self.max, blocks),
            blocks,
        )

    def nbytes(self, entry_bytes: int) -> tuple[int, int]:
        """Return the minimum and maximum number of bytes on the wire."""
        return (
            wire.min_nbytes(self.min, self.blocks, entry_bytes),
            wire.max_nbytes(self.max, self.blocks, entry_bytes),
        )

    def expected_nbytes(self, entry_bytes: float) -> float:
        """Return the expected number of bytes on the wire."""
        return wire.expected_nbytes(self.expected, self.blocks, entry_bytes)


@dataclass(frozen=True)
class PayloadCount(EntryCount):
    """Number of items in a header-only message with an auxiliary payload.

    Attributes:
        item_bytes: Bytes per item. The message has no entries, and `blocks` is unused.
    """

    item_bytes: int

    @property
    def is_dense(self) -> bool:
        """Return True: an auxiliary payload has no indices."""
        return True

    def nbytes(self, entry_bytes: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the minimum and maximum number of bytes on the wire."""
        low, high = (
            wire.auxiliary_nbytes(n, self.item_bytes) for n in (self.min, self.max)
        )
        return low, high

    def expected_nbytes(self, entry_bytes: float) -> float:  # noqa: ARG002
        """Return the expected number of bytes on the wire."""
        return wire.auxiliary_nbytes(round(self.expected), self.item_bytes)


@dataclass(frozen=True)
class RawCount(EntryCount):
    """Number of bytes in a message of the engine's own, which has no header; `blocks` is unused."""

    @property
    def is_dense(self) -> bool:
        """Return True: there are no indices."""
        return True

    def nbytes(self, entry_bytes: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the minimum and maximum number of bytes."""
        return self.min, self.max

    def expected_nbytes(self, entry_bytes: float) -> float:  # noqa: ARG002
        """Return the number of bytes."""
        return self.expected


@dataclass(frozen=True)
class Round:
    """Messages that one rank sends before it waits, and its work after that.

    Attributes:
        sends: One (peer, entry counts) pair per message. A message that bundles several
            messages has several counts.
        merged: Expected number of sparse entries that are reduced.
        written: Expected number of dense values that are written.
        receives: Messages that must arrive before the rank continues, where these exceed
            what it sends: at the root of a tree, or at a master.
        encoded: Whether the entries pass through the wire format.
        intra_node: Whether the received messages come from the same node.
        repeat: Number of times that the round is repeated back to back.
    """

    sends: tuple[tuple[int, tuple[EntryCount, ...]], ...] = ()
    merged: float = 0.0
    written: float = 0.0
    receives: tuple[EntryCount, ...] = ()
    encoded: bool = True
    intra_node: bool = False
    repeat: int = 1

    def messages(self) -> int:
        """Return the number of messages sent."""
        return self.repeat * len(self.sends)

    def counts(self) -> list[EntryCount]:
        """Return the entry counts of all messages of one repetition."""
        return [count for _, counts in self.sends for count in counts]

    def expected_nbytes(self, entry_bytes: float) -> float:
        """Return the expected number of bytes sent."""
        return self.repeat * sum(c.expected_nbytes(entry_bytes) for c in self.counts())


def union(
    workload: Workload, ranks: Iterable[int], blocks: int | None = None
) -> EntryCount:
    """Return the entry count of the reduced vectors of some ranks.

    The expected count is that of uniformly random indices, N (1 - prod(1 - k_i / N)). The
    minimum of a range is 0 unless a rank is so full that it must reach into the range.

    Args:
        workload: Input of the allreduce.
        ranks: Ranks whose vectors are reduced.
        blocks: Length of the range; the full vector by default.
    """
    N = workload.blocks
    span = N if blocks is None else blocks
    nnz = [workload.nnz[rank] for rank in ranks]
    empty = 1.0
    for k in nnz:
        empty *= 1 - k / N if N else 1
    return EntryCount(
        max(0, max(nnz) - (N - span)),
        span * (1 - empty),
        min(span, sum(nnz)),
        span,
    )


def ring_nbytes(ranks: int, nbytes: float) -> float:
    """Return the bytes that each rank sends in a bandwidth-optimal dense allreduce.

    This is 2 (P - 1) / P times the vector, as sent by a ring or by recursive halving and
    doubling. Dense baselines are counted with it throughout the package.
    """
    return 2 * (ranks - 1) * nbytes / ranks  # exact where it is an integer


def native_nbytes(algorithm: str, rank: int, ranks: int, nbytes: float) -> float:
    """Return the bytes that a rank sends in the engine's own allreduce.

    Engines do not report what they send. `comm.stats`, `comm.explain` and `auto` therefore use
    the bytes that follow from the engine's algorithm, for a vector of n bytes on P ranks:

    - "ring": gloo, and the assumption for other engines. Every rank sends 2 (P - 1) / P n.
    - "mpich": MPI_Iallreduce of MPICH. With p the largest power of two up to P, p ranks send n
      in each of log2(p) rounds of recursive doubling if n is at most 2 kB, and 2 (p - 1) / p n
      otherwise, by recursive halving and doubling. Each of the other P - p ranks sends n to one
      of them and receives the result from it.

    Two ranks send n in any case. `tests/network/test_native_bytes.py` compares these with what
    network interfaces count.

    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations
    in MPICH, IJHPCA 2005.

    Args:
        algorithm: "ring" or "mpich", see `Nodes.native_algorithm`.
        rank: The rank.
        ranks: World size.
        nbytes: Bytes of the vector.
    """
    if algorithm == "ring" or ranks == 1:
        return ring_nbytes(ranks, nbytes)
    rounds = ranks.bit_length() - 1
    power = 1 << rounds
    is_paired = rank < 2 * (ranks - power)
    if is_paired and rank % 2 == 0:
        return nbytes
    own = rounds * nbytes if nbytes <= SHORT_BYTES else ring_nbytes(power, nbytes)
    return own + is_paired * nbytes
