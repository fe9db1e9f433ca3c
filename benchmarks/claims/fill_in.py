"""Claim 12: the sum of sparse vectors fills in as ranks join (the paper's Figure 1).

Each rank stores k of every 512 consecutive values, at random places. The entries of the sum
are counted in real allreduces, and compared with their expectation in units of their own
standard deviation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tables import markdown

import sparcml

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUCKET, BUCKETS = 512, 256
KEPT = (1, 2, 4, 8, 16)
RANKS = (2, 4, 8, 16, 32, 64, 128, 256)
SIGMAS = 5.0


def expected(k: int, ranks: int, size: int = BUCKET) -> float:
    """Entries of the sum of uniformly random k-subsets: those that somebody has hit."""
    return size * (1 - (1 - k / size) ** ranks)


def variance(k: int, ranks: int, size: int = BUCKET) -> float:
    """Of the same number: one place is missed with probability a, two of them with b."""
    a = (1 - k / size) ** ranks
    b = ((size - k) * (size - k - 1) / (size * (size - 1))) ** ranks
    return size * a + size * (size - 1) * b - (size * a) ** 2


def half_full(k: int) -> int:
    """The fewest ranks for which more than half of the sum is expected to be stored."""
    return math.floor(math.log(1 / 2) / math.log(1 - k / BUCKET)) + 1


def vector(k: int, rank: int, buckets: int, seed: int) -> sparcml.Stream:
    """Ones at k random places of every bucket: no sum of them is zero."""
    rng = np.random.default_rng([seed, k, rank])
    places = np.argpartition(rng.random((buckets, BUCKET)), k)[:, :k]
    places += BUCKET * np.arange(buckets)[:, None]
    ones = np.ones(places.size, np.float32)
    return sparcml.Stream(buckets * BUCKET, np.sort(places, axis=None), ones)


def measure(k: int, ranks: int, buckets: int = BUCKETS, seed: int = 0) -> list[Row]:
    """Sum on so many ranks; all must find as many entries."""

    def body(comm: sparcml.Communicator) -> int:
        x = vector(k, comm.rank, buckets, seed)
        y = comm.allreduce(x, algorithm="ssar_recursive_double")
        return int(np.count_nonzero(y.to_dense()))

    (filled,) = set(sparcml.simulate(body, ranks, trace=0).results)
    mean, spread = (
        buckets * expected(k, ranks),
        math.sqrt(buckets * variance(k, ranks)),
    )
    return [
        {
            "k": k,
            "ranks": ranks,
            "buckets": buckets,
            "filled": filled,
            "expected": mean,
            "sigma": spread,
            "percent": 100 * filled / (buckets * BUCKET),
        }
    ]


def off(row: Row) -> float:
    """By how many standard deviations a count misses its expectation."""
    return float(abs(row["filled"] - row["expected"]) / row["sigma"])


def answer(rows: list[Row]) -> Answer:
    """Hit if every count is where the formula says, and all of them grow with ranks."""
    at = {(row["k"], row["ranks"]): row for row in rows}
    grows = all(
        at[k, RANKS[i]]["filled"] < at[k, RANKS[i + 1]]["filled"]
        for k in KEPT
        for i in range(len(RANKS) - 1)
    )
    worst = max(map(off, rows))
    few, many = at[4, RANKS[0]], at[4, RANKS[-1]]
    ours = (
        f"with 4 of 512 stored {few['percent']:.2f}% of the sum on {RANKS[0]} ranks, "
        f"{many['percent']:.1f}% on {RANKS[-1]}, more than half from {half_full(4)} on; "
        f"{len(rows)} counts within {worst:.1f} standard deviations of E[K]"
    )
    hit = grows and worst <= SIGMAS
    why = (
        "uniform places: a place stays empty only if all ranks miss it. Real gradients are "
        "not in this row yet: their places coincide more, and training runs have to show "
        "how much"
        if hit
        else f"a count is off by {worst:.1f} standard deviations, or does not grow"
    )
    return Answer(hit, ours, why, _details(at))


def _details(at: dict[tuple[int, int], Row]) -> str:
    head = ["k of 512", *(f"P = {ranks}" for ranks in RANKS), "half full from P ="]
    lines = [
        [
            str(k),
            *(
                f"{at[k, ranks]['percent']:.2f} ({100 * expected(k, ranks) / BUCKET:.2f})"
                for ranks in RANKS
            ),
            str(half_full(k)),
        ]
        for k in KEPT
    ]
    buckets = next(iter(at.values()))["buckets"]
    return (
        f"Percent of the sum that is stored, counted, and in brackets expected: E[K] = N (1 - "
        f"(1 - k/N)^P) with N = 512. Every count is of one recursive doubling over P simulated "
        f"ranks with {buckets} buckets; it may miss by {SIGMAS:g} standard deviations, from "
        f"the exact variance.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """The paper's Figure 1, for uniform places."""
    from .drawing import COLOURS, axes

    canvas, (ax,) = axes(1, (6.0, 3.8))
    many = np.geomspace(RANKS[0], RANKS[-1], 60)
    for k, colour in zip(KEPT, COLOURS, strict=False):
        curve = 100 * (1 - (1 - k / BUCKET) ** many)
        ax.plot(many, curve, "-", color=colour, lw=1)
        here = [row for row in rows if row["k"] == k]
        ranks, percent = [r["ranks"] for r in here], [r["percent"] for r in here]
        ax.plot(ranks, percent, "o", color=colour, ms=4, label=f"{k} of 512")
    ax.axhline(50, color="0.5", ls="--", lw=1)
    ax.text(RANKS[0], 53, "half of all places", color="0.4")
    ax.set(xlabel="ranks", ylabel="stored in the sum (%)", xscale="log", yscale="log")
    ax.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_title("The sum fills in: counted (points) and E[K] (lines), uniform places")
    ax.legend(frameon=False, title="stored by each rank", loc="lower right")
    return canvas


CLAIM = Claim(
    number=12,
    title="The sum fills in",
    text="the sum of sparse gradients gets denser with every rank (Figure 1)",
    source="the paper on SparCML",
    how="counted, in allreduces of simulated ranks; uniform places, real gradients later",
    seed=0,
    cases=[(k, ranks) for k in KEPT for ranks in RANKS],
    measure=measure,
    answer=answer,
    figures={"fill-in": figure},
)
