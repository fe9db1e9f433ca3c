"""Claim 26: all ranks wait for the largest of K delays.

K ranks compute for the same time plus a random delay, then synchronize. Messages take no time
here, so that a step takes its computing time plus the largest delay.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tables import markdown

import sparcml
from sparcml.network import ExponentialDelay, Gaussian, Network

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparcml.network.simulator import Stragglers

FREE = Network(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
KINDS: dict[str, Stragglers] = {
    "Gaussian": Gaussian(1.0),
    "exponential": ExponentialDelay(1.0),
}
RANKS = tuple(2**i for i in range(11))
COMPUTE = 100.0  # in units of the deviation: no delay is as much below zero
SIGMAS = 5
SEED = 1


def steps_of(ranks: int) -> int:
    """Return the number of steps to simulate: fewer for more ranks."""
    return min(200, max(24, 4096 // ranks))


def measure(kind: str, ranks: int, steps: int | None = None) -> list[Row]:
    """Return the delay of steps that end with a barrier, every fourth with an allreduce."""
    count = steps_of(ranks) if steps is None else steps

    def body(comm: sparcml.Communicator) -> list[float]:
        x, waits = np.ones(1, np.float32), []
        for step in range(count):
            start = comm.now()
            comm.advance(COMPUTE)
            if step % 4:
                comm.barrier()
            else:
                comm.allreduce(x, algorithm="recursive_double")
            waits.append(comm.now() - start - COMPUTE)
        return waits

    found = sparcml.simulate(
        body, ranks, FREE, stragglers=KINDS[kind], seed=SEED, timeout=1e9, trace=0
    )
    waits = np.array(found.results[0])  # all leave at the same time
    mean, deviation = largest(kind, ranks)
    return [
        {
            "kind": kind,
            "ranks": ranks,
            "steps": count,
            "wait": float(waits.mean()),
            "exact": mean,
            "sigma": deviation / math.sqrt(count),
        }
    ]


def largest(kind: str, ranks: int) -> tuple[float, float]:
    """Return the exact mean and deviation of the largest of K delays."""
    if kind == "exponential":
        terms = [1 / i for i in range(1, ranks + 1)]
        return math.fsum(terms), math.sqrt(math.fsum(t * t for t in terms))
    x = np.linspace(-9, 9, 6001)
    below = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    weight = np.diff(below**ranks)  # of each interval
    middle = (x[1:] + x[:-1]) / 2
    mean = float(weight @ middle)
    return mean, math.sqrt(float(weight @ (middle - mean) ** 2))


def grows(kind: str, ranks: int) -> float:
    """Return the lecture's formula."""
    return math.sqrt(2 * math.log(ranks)) if kind == "Gaussian" else math.log(ranks)


def answer(rows: list[Row]) -> Answer:
    """Hit if each mean agrees with theory, and both formulas hold for many ranks."""
    off = max(abs(row["wait"] - row["exact"]) / row["sigma"] for row in rows)
    last = {row["kind"]: row for row in rows if row["ranks"] == RANKS[-1]}
    ratios = {kind: row["wait"] / grows(kind, RANKS[-1]) for kind, row in last.items()}
    hit = off < SIGMAS and all(0.8 < ratio < 1.2 for ratio in ratios.values())
    ours = (
        f"at 1,024 ranks {last['Gaussian']['wait']:.2f} deviations (sqrt(2 ln K) = "
        f"{grows('Gaussian', 1024):.2f}) and {last['exponential']['wait']:.2f} means "
        f"(ln K = {grows('exponential', 1024):.2f})"
    )
    why = (
        f"every mean is within {off:.1f} standard errors of the exact expectation; ln K "
        f"lacks Euler's 0.58, and sqrt(2 ln K) is approached slowly from below"
    )
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    at = {(row["kind"], row["ranks"]): row for row in rows}
    head = ["K"]
    for kind in KINDS:
        head += [f"{kind}: simulated", "exact", "ln K" if "exp" in kind else "sqrt(2 ln K)"]
    lines = []
    for ranks in RANKS:
        cells = [f"{ranks:,}"]
        for kind in KINDS:
            row = at[kind, ranks]
            cells += [f"{row['wait']:.2f} ± {row['sigma']:.2f}", f"{row['exact']:.2f}"]
            cells.append(f"{grows(kind, ranks):.2f}")
        lines.append(cells)
    return (
        "Simulated by `sparcml.simulate` with `stragglers`: K ranks compute, each with a "
        "random delay of unit variance, then synchronize with a barrier, every fourth time with an "
        "allreduce; messages are free. The table shows the mean delay of a step, "
        f"over {rows[-1]['steps']} to {rows[0]['steps']} steps, with its standard "
        "error. A rank has the same delays in every row, so that deviations of rows are "
        "correlated. "
        "Exact: the integral of x d(Phi(x)^K), and 1 + 1/2 + ... + 1/K. More ranks divide the "
        f"computing, but not the delay.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot both distributions: simulated, exact, and the formulas."""
    from .drawing import BLUE, ORANGE, axes

    canvas, (ax,) = axes(1, (6.4, 3.8))
    looks = {"exponential": (ORANGE, "s", "ln K"), "Gaussian": (BLUE, "o", "sqrt(2 ln K)")}
    for kind, (colour, mark, formula) in looks.items():
        found = [row for row in rows if row["kind"] == kind]
        ranks = [row["ranks"] for row in found]
        ax.errorbar(
            ranks,
            [row["wait"] for row in found],
            yerr=[SIGMAS * row["sigma"] for row in found],
            fmt=mark,
            color=colour,
            ms=4,
            lw=1,
            label=f"{kind}: simulated, 5 sigma",
        )
        exact = [row["exact"] for row in found]
        ax.plot(ranks, exact, "-", color=colour, lw=1.2, label=f"{kind}: exact")
        curve = [grows(kind, n) for n in ranks]
        ax.plot(ranks, curve, ":", color=colour, lw=1.2, label=formula)
    ax.set(xlabel="ranks K", ylabel="delay (standard deviations)", xscale="log")
    ax.set_xticks(RANKS, [f"{ranks:,}" for ranks in RANKS])
    ax.set_title("All ranks wait for the largest of K delays, simulated")
    ax.legend(frameon=False, fontsize=8)
    return canvas


CLAIM = Claim(
    number=26,
    title="The largest of K delays",
    text=(
        "the largest of K independent delays of unit variance grows as sqrt(log K) if they "
        "are Gaussian and as log K if they are exponential"
    ),
    source="a lecture on gradient compression",
    how="simulated",
    seed=SEED,
    cases=[(kind, ranks) for kind in KINDS for ranks in RANKS],
    measure=measure,
    answer=answer,
    figures={"stragglers": figure},
)
