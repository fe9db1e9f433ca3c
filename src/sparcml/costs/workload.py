"""What a collective costs: declared once, counted by tests, turned into seconds here.

Each algorithm states, for every rank and round, whom it sends to and how many entries at
least, likely and at most. Bytes follow from the wire's sizes, seconds from a network.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from .. import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..transport import Nodes
    from .calibration import Calibration


# A sparse vector that is made dense is written, and so is the memory it comes to lie in.
MADE_DENSE = 2


@dataclass(frozen=True)
class Workload:
    """A sum to be formed: how many entries each rank brings, and who shares a node."""

    blocks: int
    entry_bytes: float
    nnz: tuple[int, ...]
    nodes: Nodes | None = None  # if that makes a difference

    @property
    def ranks(self) -> int:
        """P."""
        return len(self.nnz)

    @property
    def is_dense(self) -> bool:
        """Whether all ranks bring everything."""
        return min(self.nnz) == self.blocks


@dataclass(frozen=True)
class EntryCount:
    """Entries in one message that covers a range of `blocks`.

    The least holds as long as no sum cancels: a dense vector is sent without its zeros.
    """

    min: int
    expected: float
    max: int
    blocks: int

    @property
    def is_dense(self) -> bool:
        """Whether it has no gaps, so that there are no places to code."""
        return self.expected >= self.blocks

    def part(self, blocks: int) -> EntryCount:
        """So many of its blocks, if its entries are spread evenly."""
        if blocks == self.blocks:
            return self
        return EntryCount(
            max(0, self.min - (self.blocks - blocks)),
            self.expected * blocks / self.blocks,
            min(self.max, blocks),
            blocks,
        )

    def nbytes(self, entry_bytes: int) -> tuple[int, int]:
        """Bytes on the wire, at least and at most."""
        return (
            wire.min_nbytes(self.min, self.blocks, entry_bytes),
            wire.max_nbytes(self.max, self.blocks, entry_bytes),
        )

    def expected_nbytes(self, entry_bytes: float) -> float:
        """Bytes on the wire, likely."""
        return wire.expected_nbytes(self.expected, self.blocks, entry_bytes)


@dataclass(frozen=True)
class PayloadCount(EntryCount):
    """A header and numbers of `each` bytes that are no entries; `blocks` means nothing."""

    each: int

    @property
    def is_dense(self) -> bool:
        """They have no places."""
        return True

    def nbytes(self, entry_bytes: int) -> tuple[int, int]:  # noqa: ARG002
        """Bytes on the wire, at least and at most."""
        least, most = (wire.auxiliary_nbytes(n, self.each) for n in (self.min, self.max))
        return least, most

    def expected_nbytes(self, entry_bytes: float) -> float:  # noqa: ARG002
        """Bytes on the wire, likely."""
        return wire.auxiliary_nbytes(round(self.expected), self.each)


@dataclass(frozen=True)
class Round:
    """What one rank sends before it waits, and what it computes after.

    Attributes:
        sends: (peer, what one message to it carries) each.
        merged: Sparse entries that go through an addition, likely.
        written: Values of dense vectors that are written, likely.
        receives: Messages that must pass before it goes on, where they are more than it
            sends: to a rank that all others send to, or further up in a tree.
        encoded: Whether entries pass through our wire format.
        intra_node: Whether what it waits for comes from its own node.
        repeat: How often all of it happens, each time closely behind the last.
    """

    sends: tuple[tuple[int, tuple[EntryCount, ...]], ...] = ()
    merged: float = 0.0
    written: float = 0.0
    receives: tuple[EntryCount, ...] = ()
    encoded: bool = True
    intra_node: bool = False
    repeat: int = 1

    def messages(self) -> int:
        """How many messages."""
        return self.repeat * len(self.sends)

    def counts(self) -> list[EntryCount]:
        """What all messages carry, once."""
        return [load for _, loads in self.sends for load in loads]

    def expected_nbytes(self, entry_bytes: float) -> float:
        """Bytes sent, likely."""
        return self.repeat * sum(
            load.expected_nbytes(entry_bytes) for load in self.counts()
        )


def union(
    workload: Workload, ranks: Iterable[int], blocks: int | None = None
) -> EntryCount:
    """The sum of these ranks' vectors, over the whole range or one of `blocks`.

    Likely: entries at uniformly random places, N (1 - prod(1 - k_i / N)). At least: of a
    part nothing is certain unless every rank is full.
    """
    N = workload.blocks
    span = N if blocks is None else blocks
    counts = [workload.nnz[r] for r in ranks]
    empty = 1.0
    for k in counts:
        empty *= 1 - k / N if N else 1
    largest = max(counts)
    return EntryCount(
        max(0, largest - (N - span)),
        span * (1 - empty),
        min(span, sum(counts)),
        span,
    )


@dataclass(frozen=True)
class Network:
    """What a message, a byte and an entry cost, in seconds.

    The defaults are those of machines on 1 Gbit/s, until a network has been measured.
    """

    latency: float = 150e-6  # from sending a message to having it
    overhead: float = 50e-6  # each further one on the way at the same time
    seconds_per_byte: float = 8.5e-9
    seconds_per_encoded: float = 2e-9  # an entry that is coded and decoded
    seconds_per_merged: float = 3.5e-9  # a sparse entry that goes through an addition
    seconds_per_written: float = 0.5e-9  # a value of a dense vector
    burst: float = 0.0  # bytes that a rested link lets pass at once
    calibration: tuple[
        Calibration, ...
    ] = ()  # what algorithms really take, as far as measured
    source: str = field(default="assumed", compare=False)  # for people

    def seconds(self, rounds: Sequence[Round], entry_bytes: float) -> float:
        """Rounds follow each other; within one, a rank's messages travel together.

        They queue at its link, and the processor handles one after the other.

        Links carry both directions at once: the busier one counts.
        """
        total = 0.0
        for turn in rounds:
            sent = turn.expected_nbytes(entry_bytes)
            awaited = sum(load.expected_nbytes(entry_bytes) for load in turn.receives)
            awaited *= turn.repeat
            messages = max(turn.messages(), turn.repeat * len(turn.receives))
            if messages:
                total += self.latency + self.overhead * (messages - 1)
            total += self.seconds_per_byte * max(sent, awaited)
            total += self.computing(turn)
        return total

    def computing(self, turn: Round) -> float:
        """What a rank computes in a round."""
        coding = (
            max(self._coding(turn.counts()), self._coding(turn.receives)) * turn.encoded
        )
        work = (
            self.seconds_per_merged * turn.merged + self.seconds_per_written * turn.written
        )
        return turn.repeat * (coding + work)

    def _coding(self, loads: Iterable[EntryCount]) -> float:
        """Values without gaps are only copied, to the wire and from it."""
        return sum(
            (2 * self.seconds_per_written if load.is_dense else self.seconds_per_encoded)
            * load.expected
            for load in loads
        )


# The costs that a probe measures.
COSTS = tuple(f.name for f in fields(Network) if f.type == "float" and f.name != "burst")

# Ranks that share one machine's memory and cores: bytes are cheap, and whoever waits for a
# message waits for a core. Fitted to 4 and 8 ranks on 2 cores (docs/benchmarks.md); only
# the ratios between the algorithms matter.
ONE_MACHINE = Network(
    latency=300e-6, overhead=300e-6, seconds_per_byte=0.3e-9, seconds_per_encoded=4.5e-9
)
