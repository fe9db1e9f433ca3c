"""Whether compression pays: the time of a training step by every method and collective.

    step = computing + the method's own work + communication that does not hide

Communication hides behind a part of the computing, as the backward pass allows. All of it
is estimated from declared costs, with entries at uniformly random places: gradients whose
entries coincide do better.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from .candidates import RATIOS, Candidate, candidates
from .store import from_text

if TYPE_CHECKING:
    from ..costs import Network
    from .models import Model

MOST_RANKS = 4096
LONGEST_STEP = 1e6  # seconds
NEAR = 1.05  # so close to the best, the milder method is better
SLOWEST, FASTEST = 1e5, 1e13  # bits per second, for the rate where dense becomes best


@dataclass(frozen=True)
class Row:
    """One method with one collective; times in seconds."""

    method: str
    collective: str
    line: str
    nbytes: float
    communication: float
    exposed: float
    work: float
    step: float
    speedup: float
    bound_percent: float


@dataclass(frozen=True)
class Plan:
    """What to expect of one model on one network."""

    model: Model
    network_name: str
    network: Network
    ranks: int
    compute: float
    overlap: float
    candidates: tuple[Candidate, ...]
    rows: tuple[Row, ...] = ()

    def best(self, method: str) -> Row:
        """A method with the collective that serves it best."""
        return min((r for r in self.rows if r.method == method), key=lambda r: r.step)

    @property
    def dense(self) -> Row:
        """The baseline: the best dense sum."""
        return self.best("dense")

    @property
    def bests(self) -> list[Row]:
        """Each method at its best, the mildest first."""
        return [self.best(c.name) for c in self.candidates]

    @property
    def recommended(self) -> Row:
        """The mildest method that is nearly as fast as the fastest."""
        fastest = min(row.step for row in self.bests)
        return next(row for row in self.bests if row.step <= NEAR * fastest)

    @property
    def slower(self) -> list[str]:
        """Methods that are no faster than dense."""
        return [r.method for r in self.bests if r.method != "dense" and r.speedup <= 1]

    @property
    def why(self) -> str:
        """The verdict in a sentence."""
        row, fastest = self.recommended, max(self.bests, key=lambda r: r.speedup)
        if row.method == "dense":
            return (
                f"dense: nothing else is more than {NEAR - 1:.0%} faster "
                f"({fastest.method}: {fastest.speedup:.2f}x)"
            )
        text = f"{row.method} by {row.collective}: {row.speedup:.2f}x dense"
        if fastest.method != row.method:
            text += f"; the fastest, {fastest.method}, has {fastest.speedup:.2f}x"
        return text + "; whether accuracy holds, only training tells"

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        row = self.recommended
        return {
            "kind": "estimate",
            "model": {
                "name": self.model.name,
                "parameters": self.model.parameters,
                "tensors": len(self.model.tensors),
                "source": self.model.source,
            },
            "network": {"name": self.network_name, **asdict(self.network)},
            "ranks": self.ranks,
            "compute": self.compute,
            "overlap": self.overlap,
            "rows": [asdict(r) for r in self.rows],
            "dense_wins_against": self.slower,
            "dense_wins_from": {c.name: pays_below(self, c) for c in self.candidates[1:]},
            "scaling": scaling(self),
            "recommended": {**asdict(row), "why": self.why},
        }


def plan(
    model: Model,
    ranks: int,
    network: str | Network,
    compute: float,
    *,
    overlap: float = 0.0,
    ratios: tuple[float, ...] = RATIOS,
) -> Plan:
    """Estimate a training step of every method.

    Args:
        model: What is trained; see `models.model` and `models.of_size`.
        ranks: How many train it together, each with a batch of its own.
        network: As for `simulate`.
        compute: Seconds a rank computes for a step.
        overlap: The part of that behind which communication hides, from 0 to 1.
        ratios: Parts that TopK sends.
    """
    if not 2 <= ranks <= MOST_RANKS:
        raise ValueError(f"ranks must be from 2 to {MOST_RANKS}, got {ranks}")
    if not 0 < compute <= LONGEST_STEP:
        raise ValueError(f"step time must be above 0 s and at most 1e6 s, got {compute:g}")
    if not 0 <= overlap <= 1:
        raise ValueError(f"overlap must be from 0 to 1, got {overlap:g}")
    for ratio in ratios:
        if not 0 < ratio < 1:
            raise ValueError(f"a ratio must be above 0 and below 1, got {ratio:g}")
    name = network if isinstance(network, str) else "custom"
    costs = from_text(network) if isinstance(network, str) else network
    found = candidates(tuple(dict.fromkeys(ratios)))
    empty = Plan(model, name, costs, ranks, compute, overlap, found)
    return _filled(empty)


def _filled(p: Plan) -> Plan:
    pairs = [(c, name) for c in p.candidates for name in c.collectives]
    baseline = min(step(p, c, name, p.network, p.ranks) for c, name in pairs if c.dense)
    rows = tuple(_row(p, c, name, baseline) for c, name in pairs)
    return replace(p, rows=rows)


def _row(p: Plan, c: Candidate, collective: str, baseline: float) -> Row:
    takes = c.takes(p.model, collective, p.ranks, p.network)
    communication = takes.seconds(p.network)
    whole = step(p, c, collective, p.network, p.ranks)
    bound = c.bound(p.model, p.ranks).seconds(p.network)
    return Row(
        c.name,
        collective,
        c.code(collective),
        takes.nbytes,
        communication,
        max(0.0, communication - p.overlap * p.compute),
        c.work * p.model.parameters,
        whole,
        baseline / whole,
        100 * bound / communication,
    )


def step(p: Plan, c: Candidate, collective: str, network: Network, ranks: int) -> float:
    """Seconds of a step, on any network and number of ranks."""
    sums = c.takes(p.model, collective, ranks, network).seconds(network)
    exposed = max(0.0, sums - p.overlap * p.compute)
    return p.compute + c.work * p.model.parameters + exposed


def quickest(p: Plan, c: Candidate, network: Network, ranks: int) -> tuple[float, str]:
    """A method's step with the collective that serves it best."""
    return min((step(p, c, name, network, ranks), name) for name in c.collectives)


def scaling(p: Plan) -> list[dict[str, Any]]:
    """Each method at its best on fewer and more ranks; efficiency is computing / step."""
    counts = {2 ** round(math.log2(p.ranks) + power) for power in (-4, -2, -1, 1, 2, 4)}
    rows = []
    for ranks in sorted({n for n in counts if 2 <= n <= 1024} | {p.ranks}):
        dense, _ = quickest(p, p.candidates[0], p.network, ranks)
        for c in p.candidates:
            seconds, name = quickest(p, c, p.network, ranks)
            rows.append(
                {
                    "ranks": ranks,
                    "method": c.name,
                    "collective": name,
                    "step": seconds,
                    "speedup": dense / seconds,
                    "efficiency": p.compute / seconds,
                }
            )
    return rows


def pays_below(p: Plan, c: Candidate) -> float | None:
    """The rate in bits per second from which dense is as fast; None if it never is."""

    def pays(rate: float) -> bool:
        network = replace(p.network, seconds_per_byte=8 / rate)
        return (
            quickest(p, c, network, p.ranks)[0]
            < quickest(p, p.candidates[0], network, p.ranks)[0]
        )

    if not pays(SLOWEST):
        return 0.0
    if pays(FASTEST):
        return None
    low, high = SLOWEST, FASTEST
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if pays(middle) else (low, middle)
    return low
