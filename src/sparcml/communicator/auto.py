"""Which algorithm: each one's declared cost, in seconds on a network; the least wins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..costs.calibration import calibrated_seconds
from ..costs.lower_bound import bound
from ..costs.workload import Workload
from .declared import CostEstimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..collectives import Algorithm
    from ..costs.workload import Network
    from ..transport import Nodes

MOST = 4096  # forecasts that are kept
NEAR = 1.03  # estimates that differ by less may be the same


@dataclass(frozen=True)
class Estimate:
    """What one algorithm would cost the busiest rank."""

    algorithm: str
    messages: int
    nbytes: float
    seconds: float
    lossy: bool = False  # not a sum, but its largest entries: never chosen


@dataclass(frozen=True)
class Explanation:
    """What `auto` would choose for a vector, and what each choice would cost."""

    workload: Workload
    network: Network
    estimates: tuple[Estimate, ...]  # the best first
    choice: str  # the algorithm that `auto` takes
    bound: float  # seconds that no sum could do with less
    lossy_bound: float  # the same for its largest entries alone

    def percent(self, estimate: Estimate) -> float:
        """Of its time, what no algorithm could do without."""
        least = self.lossy_bound if estimate.lossy else self.bound
        return 100 * least / estimate.seconds if estimate.seconds else 100.0

    def __str__(self) -> str:
        p = self.workload
        density = max(p.nnz) / p.blocks if p.blocks else 1.0
        if p.ranks == 1:
            return "one rank: nothing travels"
        lines = [
            (
                f"{p.ranks} ranks, {p.blocks} entries of {p.entry_bytes:.4g} bytes, at most "
                f"{max(p.nnz)} stored on a rank ({density:.3%})"
            ),
            f"{'algorithm':24} {'messages':>8} {'bytes':>13} {'ms':>10} {'% of bound':>11}",
        ]
        lines += [
            f"{e.algorithm + ' (lossy)' * e.lossy:24} {e.messages:8d} {e.nbytes:13.0f} "
            f"{e.seconds * 1e3:10.3f} {self.percent(e):11.0f}"
            for e in self.estimates
        ]
        return "\n".join([*lines, self._why()])

    def _why(self) -> str:
        (taken,) = [e for e in self.estimates if e.algorithm == self.choice]
        sums = [e for e in self.estimates if not e.lossy]
        other = next(e for e in sums if e.algorithm != self.choice)
        if other.seconds < taken.seconds and self.choice == "native":
            return (
                f"auto takes {self.choice}: the engine has the dense algorithms above it "
                f"too, and uses them where they are best"
            )
        if other.seconds < taken.seconds:
            return (
                f"auto takes {self.choice}: what is above it are guesses at dense sums, which "
                f"count once `sparcml probe` has measured them"
            )
        gain = other.seconds / taken.seconds if taken.seconds else 1.0
        return (
            f"auto takes {self.choice}: estimated {gain:.2f}x faster than "
            f"{other.algorithm} (by a model of the network: {self.network.source})"
        )


def explain(
    workload: Workload, network: Network, algorithms: Mapping[str, Algorithm]
) -> Explanation:
    """Estimate every algorithm."""
    estimates = sorted(
        (
            estimate(name, a, workload, network)
            for name, a in algorithms.items()
            if _has_levels(workload) or not a.multi_node
        ),
        key=_seconds,
    )
    choice = choose(workload, network, tuple(algorithms))
    bounds = (bound(workload, network, lossy=lossy) for lossy in (False, True))
    return Explanation(workload, network, tuple(estimates), choice, *bounds)


@lru_cache(maxsize=256)  # training steps repeat themselves
def choose(workload: Workload, network: Network, names: tuple[str, ...]) -> str:
    """What `auto` takes: the least estimate; ties go to the one listed first.

    Unless they were measured, the dense algorithms of ours are left out. Engines have them
    too, use each where it is best, and code nothing: `native` stands for all, and no small
    difference between the guess at it and our own counts displaces it. What loses entries
    is for the caller to ask for.
    """
    from ..collectives import ALLREDUCES

    able = [(name, ALLREDUCES[name]) for name in names]
    guessed = not network.calibration
    able = [(name, a) for name, a in able if not ((a.is_dense and guessed) or a.lossy)]
    able = [(name, a) for name, a in able if _has_levels(workload) or not a.multi_node]
    estimates = [estimate(name, a, workload, network) for name, a in able]
    best = min(estimates, key=_seconds)
    near = [e for e in estimates if e.seconds <= NEAR * best.seconds]
    return next((e for e in near if e.algorithm == "native"), best).algorithm


class TimePredictor:
    """Seconds that sums take on one network if all ranks bring about as many entries.

    What was worked out is kept: every call asks.
    """

    def __init__(self, network: Network, nodes: Nodes) -> None:
        self._network, self._nodes = network, nodes
        self._known: dict[tuple[str, int, float, int], float] = {}

    def seconds(self, name: str, blocks: int, entry_bytes: float, nnz: int) -> float:
        """For one algorithm and as many entries as this rank brings."""
        key = name, blocks, entry_bytes, min(_about(nnz), blocks)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = self._work_out(*key)
        return found

    def _work_out(self, name: str, blocks: int, entry_bytes: float, nnz: int) -> float:
        from ..collectives import ALLREDUCES

        each = (nnz,) * len(self._nodes.of)
        workload = Workload(blocks, entry_bytes, each, self._nodes)
        return estimate(name, ALLREDUCES[name], workload, self._network).seconds


def _about(nnz: int) -> int:
    """A number near it, of few: one that differs by a thirty-second need not be new."""
    unit = 1 << max(0, nnz.bit_length() - 5)
    return (nnz + unit // 2) // unit * unit


def _seconds(estimate: Estimate) -> float:
    return estimate.seconds


def _has_levels(workload: Workload) -> bool:
    return workload.nodes is not None and workload.nodes.is_hierarchy


def estimate(
    name: str, algorithm: Algorithm, workload: Workload, network: Network
) -> Estimate:
    """What an algorithm costs the rank or node with most to do."""
    declared = CostEstimate(algorithm, workload)
    seconds = calibrated_seconds(network, name, declared.nbytes, declared.seconds)
    return Estimate(name, declared.messages, declared.nbytes, seconds, algorithm.lossy)
