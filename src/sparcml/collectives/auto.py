"""Which algorithm: each one's declared cost, in seconds on a network; the least wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Algorithm
    from .cost import Network, Problem


@dataclass(frozen=True)
class Estimate:
    """What one algorithm would cost the busiest rank."""

    algorithm: str
    messages: int
    nbytes: float
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """What `auto` would choose for a vector, and what each choice would cost."""

    problem: Problem
    network: Network
    estimates: tuple[Estimate, ...]  # the best first

    @property
    def choice(self) -> str:
        """The algorithm that `auto` takes."""
        return self.estimates[0].algorithm

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
            f"{e.algorithm:24} {e.messages:8d} {e.nbytes:13.0f} {e.seconds * 1e3:10.3f}"
            for e in self.estimates
        ]
        first, second = self.estimates[:2]
        gain = second.seconds / first.seconds if first.seconds else 1.0
        lines.append(
            f"auto takes {first.algorithm}: estimated {gain:.2f}x faster than "
            f"{second.algorithm} (a model of the network, not a measurement)"
        )
        return "\n".join(lines)


def explain(
    problem: Problem, network: Network, algorithms: Mapping[str, Algorithm]
) -> Explanation:
    """Estimate every algorithm; ties go to the one listed first."""
    estimates = [
        _estimate(name, algorithm, problem, network)
        for name, algorithm in algorithms.items()
    ]
    return Explanation(problem, network, tuple(sorted(estimates, key=_seconds)))


def _seconds(estimate: Estimate) -> float:
    return estimate.seconds


def _estimate(
    name: str, algorithm: Algorithm, problem: Problem, network: Network
) -> Estimate:
    # Ranks differ only by folding and by rounding of ranges: the ends show it.
    ranks = sorted({0, 1 % problem.ranks, problem.ranks - 1})
    costs = [algorithm.cost(rank, problem) for rank in ranks]
    entry = problem.entry_bytes
    return Estimate(
        name,
        max(sum(r.messages() for r in rounds) for rounds in costs),
        max(sum(r.nbytes(entry)[1] for r in rounds) for rounds in costs),
        max(network.seconds(rounds, entry) for rounds in costs),
    )
