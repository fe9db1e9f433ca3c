"""Estimate the time of a training step for every aggregation method and allreduce algorithm.

    step = compute + work of the method + exposed communication

Communication overlaps with a part of the computing, as the backward pass allows. The estimate
uses declared costs and uniformly random indices; gradients whose indices coincide do better.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..network.store import from_text
from .candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..costs import Network
    from .candidates import Accuracy, PlannedMethod
    from .models import Model

MAX_RANKS = 4096
MAX_STEP = 1e6  # seconds
NEAR = 1.05  # within this factor of the fastest method, a less lossy one is recommended
MIN_BANDWIDTH, MAX_BANDWIDTH = 1e5, 1e13  # bits per second, for `dense_wins_from`


@dataclass(frozen=True)
class Row:
    """One method with one allreduce algorithm; times in seconds."""

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
    accuracy: str = ""
    measurement: str = ""


@dataclass(frozen=True)
class Plan:
    """Estimates for one model on one network.

    If the candidates have an accuracy under `optimizer`, only those that keep it are
    recommended.
    """

    model: Model
    network_name: str
    network: Network
    ranks: int
    compute: float
    overlap: float
    candidates: tuple[Candidate, ...]
    optimizer: str = ""
    rows: tuple[Row, ...] = ()

    def best(self, method: str) -> Row:
        """Return a method with its fastest algorithm."""
        return min((r for r in self.rows if r.method == method), key=lambda r: r.step)

    @property
    def baseline(self) -> Candidate:
        """The exact method that the others are compared with."""
        return next(c for c in self.candidates if c.method.is_exact)

    @property
    def dense(self) -> Row:
        """The baseline with its fastest algorithm."""
        return self.best(self.baseline.name)

    @property
    def bests(self) -> list[Row]:
        """Each method with its fastest algorithm, the least lossy first."""
        return [self.best(c.name) for c in self.candidates]

    @property
    def eligible(self) -> list[Row]:
        """Those of `bests` that may be recommended."""
        return [self.best(c.name) for c in self.candidates if c.may_be_recommended]

    @property
    def recommended(self) -> Row:
        """The least lossy eligible method that is nearly as fast as the fastest of them."""
        fastest = min(row.step for row in self.eligible)
        return next(row for row in self.eligible if row.step <= NEAR * fastest)

    def faster(self, verdict: str) -> list[Row]:
        """Return the methods of this accuracy that are faster than the recommended one."""
        limit = self.recommended.step
        return [r for r in self.bests if r.accuracy == verdict and r.step < limit]

    @property
    def chosen(self) -> Candidate:
        """The candidate of the recommended row."""
        return next(c for c in self.candidates if c.name == self.recommended.method)

    @property
    def slower(self) -> list[str]:
        """Methods that are not faster than the baseline."""
        dense = self.baseline.name
        return [r.method for r in self.bests if r.method != dense and r.speedup <= 1]

    @property
    def why(self) -> str:
        """The reason for the recommendation, in one sentence."""
        row, fastest = self.recommended, max(self.eligible, key=lambda r: r.speedup)
        if len(self.eligible) == 1 and row.accuracy:
            return "dense: no other method was measured with this optimizer"
        if row.method == self.baseline.name:
            known = " that keeps the accuracy" if row.accuracy else ""
            return (
                f"dense: no method{known} is more than {NEAR - 1:.0%} faster "
                f"({fastest.method}: {fastest.speedup:.2f}x)"
            )
        text = f"{row.method} by {row.collective}: {row.speedup:.2f}x dense"
        if fastest.method != row.method:
            text += f"; the fastest, {fastest.method}, has {fastest.speedup:.2f}x"
        if row.measurement:
            return f"{text}; measured: {row.measurement}"
        return text + "; check the accuracy by training"

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers, for JSON."""
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
            "optimizer": self.optimizer,
            "rows": [asdict(r) for r in self.rows],
            "dense_wins_against": self.slower,
            "dense_wins_from": {
                c.name: dense_wins_from(self, c)
                for c in self.candidates
                if c is not self.baseline
            },
            "scaling": scaling(self),
            "recommended": {**asdict(row), "why": self.why},
        }


def plan(
    model: Model,
    ranks: int,
    network: str | Network,
    compute: float,
    *,
    methods: Sequence[PlannedMethod],
    overlap: float = 0.0,
    optimizer: str = "",
    accuracy: Callable[[PlannedMethod, str], Accuracy] | None = None,
) -> Plan:
    """Estimate a training step of every method.

    Args:
        model: The model; see `models.model` and `models.of_size`.
        ranks: World size; each rank has a batch of its own.
        network: Network, as for `simulate`.
        compute: Seconds of computing per step.
        methods: Aggregation methods, the least lossy first, such as
            `aggregate.planning.planned_methods()`; one of them must be exact.
        overlap: Fraction of `compute` that communication may overlap with, from 0 to 1.
        optimizer: Optimizer of the training, for `accuracy`.
        accuracy: Accuracy of a method under an optimizer, such as
            `aggregate.evidence.accuracy`. Without it, all methods may be recommended.
    """
    if not 2 <= ranks <= MAX_RANKS:
        raise ValueError(f"plan: ranks must be from 2 to {MAX_RANKS}, got {ranks}")
    if not 0 < compute <= MAX_STEP:
        raise ValueError(
            f"plan: step time must be above 0 s and at most 1e6 s, got {compute:g}"
        )
    if not 0 <= overlap <= 1:
        raise ValueError(f"plan: overlap must be from 0 to 1, got {overlap:g}")
    if not any(method.is_exact for method in methods):
        raise ValueError("plan: methods must include an exact one, such as sparcml.Dense()")
    name = network if isinstance(network, str) else "custom"
    costs = from_text(network) if isinstance(network, str) else network
    candidates = tuple(
        Candidate(
            m,
            m.planning(model.tensors),
            None if accuracy is None else accuracy(m, optimizer),
        )
        for m in methods
    )
    empty = Plan(model, name, costs, ranks, compute, overlap, candidates, optimizer)
    baseline, _ = fastest(empty, empty.baseline, costs, ranks)
    rows = [
        _row(empty, c, algorithm, baseline)
        for c in candidates
        for algorithm in c.algorithms
    ]
    return replace(empty, rows=tuple(rows))


def _row(p: Plan, c: Candidate, algorithm: str, baseline: float) -> Row:
    cost = c.cost(algorithm, p.ranks, p.network)
    communication = cost.seconds(p.network)
    seconds = step(p, c, algorithm, p.network, p.ranks)
    bound = c.lower_bound(p.ranks).seconds(p.network)
    return Row(
        c.name,
        algorithm,
        c.code(algorithm),
        cost.nbytes,
        communication,
        max(0.0, communication - p.overlap * p.compute),
        work(p, c),
        seconds,
        baseline / seconds,
        100 * bound / communication,
        *(("", "") if c.accuracy is None else (c.accuracy.verdict, c.accuracy.measurement)),
    )


def work(p: Plan, c: Candidate) -> float:
    """Return the seconds of the method's own work per step."""
    return c.planning.seconds_per_value * p.model.parameters


def step(p: Plan, c: Candidate, algorithm: str, network: Network, ranks: int) -> float:
    """Return the seconds of a step, on any network and world size."""
    communication = c.cost(algorithm, ranks, network).seconds(network)
    exposed = max(0.0, communication - p.overlap * p.compute)
    return p.compute + work(p, c) + exposed


def fastest(p: Plan, c: Candidate, network: Network, ranks: int) -> tuple[float, str]:
    """Return the seconds of a method's step with its fastest algorithm, and its name."""
    return min((step(p, c, name, network, ranks), name) for name in c.algorithms)


def scaling(p: Plan) -> list[dict[str, Any]]:
    """Return rows for smaller and larger world sizes; efficiency is compute / step."""
    counts = {2 ** round(math.log2(p.ranks) + power) for power in (-4, -2, -1, 1, 2, 4)}
    rows = []
    for ranks in sorted({n for n in counts if 2 <= n <= 1024} | {p.ranks}):
        dense, _ = fastest(p, p.baseline, p.network, ranks)
        for c in p.candidates:
            seconds, name = fastest(p, c, p.network, ranks)
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


def dense_wins_from(p: Plan, c: Candidate) -> float | None:
    """Return the bandwidth in bits per second from which dense is as fast as a method.

    It is 0 if dense is always as fast, and None if it never is.
    """

    def is_faster(bandwidth: float) -> bool:
        network = replace(p.network, seconds_per_byte=8 / bandwidth)
        dense, _ = fastest(p, p.baseline, network, p.ranks)
        return fastest(p, c, network, p.ranks)[0] < dense

    if not is_faster(MIN_BANDWIDTH):
        return 0.0
    if is_faster(MAX_BANDWIDTH):
        return None
    low, high = MIN_BANDWIDTH, MAX_BANDWIDTH
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_faster(middle) else (low, middle)
    return low
