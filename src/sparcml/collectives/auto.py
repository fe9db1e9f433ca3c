"""Which algorithm: each one's declared cost, in seconds on a network; the least wins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .cost import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Algorithm
    from .cost import Network


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

    problem: Problem
    network: Network
    estimates: tuple[Estimate, ...]  # the best first
    choice: str  # the algorithm that `auto` takes

    def __str__(self) -> str:
        p = self.problem
        density = max(p.nnz) / p.blocks if p.blocks else 1.0
        lines = [
            (
                f"{p.ranks} ranks, {p.blocks} entries of {p.entry_bytes} bytes, at most "
                f"{max(p.nnz)} stored on a rank ({density:.3%})"
            ),
            f"{'algorithm':24} {'messages':>8} {'bytes':>13} {'ms':>10}",
        ]
        lines += [
            f"{e.algorithm + ' (lossy)' * e.lossy:24} {e.messages:8d} {e.nbytes:13.0f} "
            f"{e.seconds * 1e3:10.3f}"
            for e in self.estimates
        ]
        return "\n".join([*lines, self._why()])

    def _why(self) -> str:
        (taken,) = [e for e in self.estimates if e.algorithm == self.choice]
        sums = [e for e in self.estimates if not e.lossy]
        other = next(e for e in sums if e.algorithm != self.choice)
        if other.seconds < taken.seconds:
            return (
                f"auto takes {self.choice}: the engine has the dense algorithms above it "
                f"too, and uses them where they are best"
            )
        gain = other.seconds / taken.seconds if taken.seconds else 1.0
        return (
            f"auto takes {self.choice}: estimated {gain:.2f}x faster than "
            f"{other.algorithm} (by a model of the network: {self.network.origin})"
        )


def explain(
    problem: Problem, network: Network, algorithms: Mapping[str, Algorithm]
) -> Explanation:
    """Estimate every algorithm."""
    estimates = sorted(
        (_estimate(name, a, problem, network) for name, a in algorithms.items()),
        key=_seconds,
    )
    choice = choose(problem, network, tuple(algorithms))
    return Explanation(problem, network, tuple(estimates), choice)


@lru_cache(maxsize=256)  # training steps repeat themselves
def choose(problem: Problem, network: Network, names: tuple[str, ...]) -> str:
    """What `auto` takes: the least estimate; ties go to the one listed first.

    The dense algorithms of ours are left out. Engines have them too, use each where it is
    best, and code nothing: `native` stands for all, and no small difference between the
    guess at it and our own counts can displace it. What loses entries is for the caller
    to ask for.
    """
    from . import ALLREDUCES

    able = [(name, ALLREDUCES[name]) for name in names]
    able = [(name, a) for name, a in able if not (a.dense or a.lossy)]
    estimates = [_estimate(name, a, problem, network) for name, a in able]
    return min(estimates, key=_seconds).algorithm


def predict(
    name: str, blocks: int, entry_bytes: int, nnz: int, ranks: int, network: Network
) -> float:
    """Seconds that a sum takes if all ranks bring about as many entries as this one."""
    return _predict(name, blocks, entry_bytes, min(_about(nnz), blocks), ranks, network)


def _about(nnz: int) -> int:
    """A number near it, of few: one that differs by a thirty-second need not be new."""
    unit = 1 << max(0, nnz.bit_length() - 5)
    return (nnz + unit // 2) // unit * unit


@lru_cache(maxsize=1024)
def _predict(
    name: str, blocks: int, entry_bytes: int, nnz: int, ranks: int, network: Network
) -> float:
    from . import ALLREDUCES

    problem = Problem(blocks, entry_bytes, (nnz,) * ranks)
    return _estimate(name, ALLREDUCES[name], problem, network).seconds


def _seconds(estimate: Estimate) -> float:
    return estimate.seconds


def _estimate(
    name: str, algorithm: Algorithm, problem: Problem, network: Network
) -> Estimate:
    # Ranks differ by folding, rounding of ranges, places in trees, and what they bring: a
    # few show it, the one that brings most and those it talks to among them.
    P = problem.ranks
    busiest = problem.nnz.index(max(problem.nnz))
    some = {0, 1, P // 2, P - 1, busiest, min(busiest ^ 1, P - 1)}
    ranks = range(P) if P <= 16 else sorted(some)
    entry = problem.entry_bytes
    cost = algorithm.again or algorithm.cost
    costs = [cost(rank, problem) for rank in ranks]
    return Estimate(
        name,
        max(sum(r.messages() for r in rounds) for rounds in costs),
        max(sum(r.likely_nbytes(entry) for r in rounds) for rounds in costs),
        max(network.seconds(rounds, entry) for rounds in costs),
        algorithm.lossy,
    )
