"""Network model: the seconds that messages, bytes and entries cost.

The model is LogGP's, with the costs of our own encoding and reduction added.

Reference: Alexandrov, Ionescu, Schauser, Scheiman: LogGP: Incorporating Long Messages into
the LogP Model, SPAA 1995.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .workload import EntryCount, Round, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class CostedAlgorithm(Hashable, Protocol):
    """Collective with a declared cost; `sparcml.collectives` implements it."""

    @property
    def name(self) -> str:
        """Name of the algorithm."""

    @property
    def lossy(self) -> bool:
        """Whether the algorithm drops entries."""

    def rounds(self, rank: int, workload: Workload) -> list[Round]:
        """Return the rounds of one rank."""


class Calibration(NamedTuple):
    """Measured correction of one algorithm's declared cost.

    A declared cost has three parts: latency and overhead, bytes on links, and work. Engines
    handle some message patterns better than others, ranks may share cores, and some work is
    not declared. `sparcml probe` therefore measures a weight for each part.

    Attributes:
        algorithm: Name of the algorithm.
        start: Seconds per call that do not depend on the input.
        waiting: Weight of the seconds spent on latency and overhead.
        bytes: Weight of the seconds spent on bytes.
        work: Weight of the seconds spent on encoding and reduction.
    """

    algorithm: str
    start: float
    waiting: float
    bytes: float
    work: float


@dataclass(frozen=True)
class Network:
    """Costs in seconds. The defaults are those of machines on 1 Gbit/s Ethernet.

    Attributes:
        latency: Time from sending a message to receiving it.
        overhead: Time of each further message that is in flight at the same time.
        seconds_per_byte: Time of a byte on the link.
        seconds_per_encoded: Time to encode and decode a sparse entry.
        seconds_per_merged: Time to reduce a sparse entry.
        seconds_per_written: Time to write a dense value.
        burst: Bytes that an idle link accepts at once.
        calibration: Measured corrections, one per algorithm.
        source: Where the costs come from, for reports.
    """

    latency: float = 150e-6
    overhead: float = 50e-6
    seconds_per_byte: float = 8.5e-9
    seconds_per_encoded: float = 2e-9
    seconds_per_merged: float = 3.5e-9
    seconds_per_written: float = 0.5e-9
    burst: float = 0.0
    calibration: tuple[Calibration, ...] = ()
    source: str = field(default="assumed", compare=False)

    def seconds(self, rounds: Sequence[Round], entry_bytes: float) -> float:
        """Return the seconds that one rank needs for its rounds."""
        return self.terms(rounds, entry_bytes).seconds(self)

    def terms(self, rounds: Sequence[Round], entry_bytes: float) -> CostTerms:
        """Return the terms of one rank's rounds, which do not depend on the costs of links.

        Rounds follow each other. Within a round all messages are in flight together: they
        share the link, and the processor handles one after the other. Links are full
        duplex, so that only the direction with more bytes counts.

        Args:
            rounds: The rounds.
            entry_bytes: Bytes of one block's values on the wire.
        """
        latencies, following, nbytes, work = 0, 0, 0.0, 0.0
        for round in rounds:
            sent = round.expected_nbytes(entry_bytes)
            received = sum(count.expected_nbytes(entry_bytes) for count in round.receives)
            received *= round.repeat
            messages = max(round.messages(), round.repeat * len(round.receives))
            latencies += messages > 0
            following += max(0, messages - 1)
            nbytes += max(sent, received)
            work += self.compute_seconds(round)
        return CostTerms(latencies, following, nbytes, work)

    def without(self, costs: Iterable[str]) -> Network:
        """Return the same network with some of its costs set to zero."""
        zeros: dict[str, Any] = dict.fromkeys(costs, 0.0)
        return replace(self, **zeros)

    def with_shared_processors(self, ranks: float) -> Network:
        """Return the same network with several ranks per processor, which compute in turn."""
        costs: dict[str, Any] = {
            name: ranks * getattr(self, name) for name in COMPUTE_COSTS
        }
        return replace(self, **costs)

    def calibrated_seconds(
        self, algorithm: str, nbytes: float, declared: Callable[[Network], float]
    ) -> float:
        """Return the calibrated seconds of an algorithm, or the declared ones without any.

        Args:
            algorithm: Name of the algorithm.
            nbytes: Bytes that the busiest rank sends.
            declared: Function that returns the declared seconds on a network.
        """
        for calibration in self.calibration:
            if calibration.algorithm == algorithm:
                weighted = zip(calibration[2:], self.parts(nbytes, declared), strict=True)
                return calibration.start + sum(weight * part for weight, part in weighted)
        return declared(self)

    def parts(
        self, nbytes: float, declared: Callable[[Network], float]
    ) -> tuple[float, float, float]:
        """Return the declared seconds of waiting, of bytes on links, and of work.

        Bytes within the burst of an idle link take no time.
        """
        waiting = declared(self.without((*COMPUTE_COSTS, "seconds_per_byte")))
        links = declared(self.without((*COMPUTE_COSTS, "latency", "overhead")))
        work = declared(self.without(LINK_COSTS))
        if nbytes:
            links *= max(0.0, 1 - self.burst / nbytes)
        return waiting, links, work

    def compute_seconds(self, round: Round) -> float:
        """Return the seconds of encoding and reduction in one round."""
        encoding = round.encoded * max(
            self._encoding_seconds(round.counts()), self._encoding_seconds(round.receives)
        )
        work = (
            self.seconds_per_merged * round.merged
            + self.seconds_per_written * round.written
        )
        return round.repeat * (encoding + work)

    def _encoding_seconds(self, counts: Iterable[EntryCount]) -> float:
        # A full range has no indices: its values are copied to the wire and from it.
        return sum(
            (2 * self.seconds_per_written if c.is_dense else self.seconds_per_encoded)
            * c.expected
            for c in counts
        )


# Costs that `sparcml probe` measures.
COSTS = tuple(f.name for f in fields(Network) if f.type == "float" and f.name != "burst")
LINK_COSTS = ("latency", "overhead", "seconds_per_byte")
COMPUTE_COSTS = ("seconds_per_encoded", "seconds_per_merged", "seconds_per_written")

# Ranks of threads or torch on one machine: bytes are cheap, and a rank that waits for a message
# also waits for a core. Fitted to 4 and 8 ranks on 2 cores; only the ratios between the
# algorithms matter.
ONE_MACHINE = Network(
    latency=300e-6, overhead=300e-6, seconds_per_byte=0.3e-9, seconds_per_encoded=4.5e-9
)


def in_shared_memory(ranks_per_processor: float) -> Network:
    """Return the costs of MPI ranks in the memory of one machine.

    Fitted to five algorithms with 2, 4 and 8 ranks on 2 processors, 100 k to 16 M values at 0.01
    to 10 %. Ranks that share a processor also wait for their turn, which adds to every message.
    """
    share = max(1.0, ranks_per_processor)
    return Network(
        latency=8.3e-6 * share**1.4,
        overhead=2.2e-6 * share**1.4,
        seconds_per_byte=0.55e-9 * share,
        seconds_per_encoded=3.7e-9 * share,
        seconds_per_merged=2.3e-9 * share,
        seconds_per_written=0.38e-9 * share,
    )


@dataclass(frozen=True)
class CostTerms:
    """Cost of one rank, separated into terms that are linear in the costs of a network.

    The rounds of an algorithm are evaluated once, and the seconds on any number of networks
    follow from the terms: for a sweep, or for a page with sliders.

    Attributes:
        rounds: Number of latencies that follow each other.
        messages: Number of messages that are in flight together with an earlier one.
        nbytes: Number of bytes that follow each other on a link.
        work: Seconds of encoding and reduction.
    """

    rounds: float = 0.0
    messages: float = 0.0
    nbytes: float = 0.0
    work: float = 0.0

    def __add__(self, other: CostTerms) -> CostTerms:
        return CostTerms(
            self.rounds + other.rounds,
            self.messages + other.messages,
            self.nbytes + other.nbytes,
            self.work + other.work,
        )

    def seconds(self, network: Network) -> float:
        """Return the seconds on a network."""
        return (
            network.latency * self.rounds
            + network.overhead * self.messages
            + network.seconds_per_byte * self.nbytes
            + self.work
        )


def cost_terms(
    algorithm: CostedAlgorithm,
    ranks: int,
    values: int,
    nnz: int,
    entry_bytes: float,
    network: Network,
) -> CostTerms:
    """Return the terms of an allreduce of vectors with the same nnz on all ranks.

    Args:
        algorithm: The allreduce algorithm.
        ranks: World size.
        values: Size of the vectors.
        nnz: Nonzeros per rank.
        entry_bytes: Bytes of one value on the wire.
        network: Only its costs of encoding and reduction are used.
    """
    if ranks == 1 or not values:
        return CostTerms()
    processor = network.without(LINK_COSTS)
    return _cost_terms(algorithm, ranks, values, nnz, entry_bytes, processor)


@lru_cache(maxsize=4096)
def _cost_terms(
    algorithm: CostedAlgorithm,
    ranks: int,
    values: int,
    nnz: int,
    entry_bytes: float,
    processor: Network,
) -> CostTerms:
    # With equal nnz the ranks differ by rounding, and rank 0 has the longest range. If the world
    # size is not a power of two, rank 1 may also take part for rank 0.
    workload = Workload(values, entry_bytes, (nnz,) * ranks)
    busiest = (0,) if ranks & (ranks - 1) == 0 else (0, 1)
    found = [processor.terms(algorithm.rounds(r, workload), entry_bytes) for r in busiest]
    return max(found, key=lambda terms: (terms.rounds, terms.nbytes))
