"""A kernel on one input: the call, the expected result, and the peer to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sparcml import kernels
from sparcml.bench.results import quantile
from sparcml.bench.vectors import different

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.stopwatch import Stopwatch
    from numpy.typing import NDArray

    from sparcml.bench.results import Row

    Arrays = tuple[NDArray[Any], ...]


class Floor(NamedTuple):
    """A requirement for the best instruction set; one of the two fields is set."""

    rate: float | None = None  # minimum throughput, in the unit of the case
    over_peer: float | None = None  # maximum time, as a multiple of the peer's

    def met(self, rate: float, over_peer: float | None) -> bool:
        """Return whether the requirement is met."""
        if self.rate is not None:
            return rate >= self.rate
        assert self.over_peer is not None
        return over_peer is not None and over_peer <= self.over_peer

    def __str__(self) -> str:
        return f"<= {self.over_peer}x" if self.rate is None else f">= {self.rate:g}"


@dataclass(frozen=True)
class Case:
    """One row of the table per instruction set.

    Attributes:
        what: Name of the kernel and its input.
        size: Number of input entries or values.
        run: The kernel on prepared arrays; returns its output.
        want: Expected output, from the NumPy reference.
        work: Entries or bytes per run, the numerator of the throughput.
        unit: Unit of the throughput: M/s or GB/s.
        peer: Name of the peer.
        run_peer: The peer's call; None if it is not installed.
        floor: Requirement, if any.
        entry_bytes: Encoded bytes per entry, for encoders.
        output: Returns the output to check; by default `run`.
    """

    what: str
    size: int
    run: Callable[[], Arrays]
    want: Arrays
    work: float
    unit: str
    peer: str
    run_peer: Callable[[], object] | None
    floor: Floor | None = None
    entry_bytes: float | None = None
    output: Callable[[], Arrays] | None = None

    def wrong(self) -> int:
        """Return the number of output values that differ from the reference."""
        got = (self.output or self.run)()
        return max(different(a, b) for a, b in zip(got, self.want, strict=True))


def measure(case: Case, isa: str, stopwatch: Stopwatch) -> Row:
    """Time a case in turns with its peer, check its output, and return its row."""
    times, *peers = stopwatch.time(case.run, *filter(None, [case.run_peer]))
    median = quantile(times, 0.5)
    over_peer = median / quantile(peers[0], 0.5) if peers else None
    rate = case.work / median / (1.0 if case.unit == "M/s" else 1e3)
    # Floors hold for the best instruction set only.
    floor = case.floor if isa == kernels.isas()[0] else None
    met = None if floor is None else "yes" if floor.met(rate, over_peer) else "no"
    return {
        "kernel": case.what,
        "isa": isa,
        "size": case.size,
        "median": median,
        "q1": quantile(times, 0.25),
        "q3": quantile(times, 0.75),
        "each": 1e3 * median / case.size,
        "rate": rate,
        "unit": case.unit,
        "entry_bytes": case.entry_bytes,
        "over_peer": over_peer,
        "peer": case.peer if peers else f"{case.peer} missing",
        "floor": None if floor is None else str(floor),
        "met": met,
        "wrong": case.wrong(),
    }
