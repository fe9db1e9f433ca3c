"""Claim 12: the sum of sparse vectors fills in with more ranks (the paper's Figure 1).

Each rank has k nonzeros in every 512 consecutive values, at random indices. The nnz of the
sum is counted in real allreduces and compared with its expectation, in standard deviations.
The indices that real gradients select are counted too.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from tables import markdown

import sparcml

from . import gradient_supports
from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUCKET, BUCKETS = 512, 256
KEPT = (1, 2, 4, 8, 16)
RANKS = (2, 4, 8, 16, 32, 64, 128, 256)
SIGMAS = 5.0


def expected(k: int, ranks: int, size: int = BUCKET) -> float:
    """Return the expected nnz of the union of uniformly random k-subsets."""
    return size * (1 - (1 - k / size) ** ranks)


def variance(k: int, ranks: int, size: int = BUCKET) -> float:
    """Return its standard deviation, from the probabilities of missing one and two indices."""
    a = (1 - k / size) ** ranks
    b = ((size - k) * (size - k - 1) / (size * (size - 1))) ** ranks
    return size * a + size * (size - 1) * b - (size * a) ** 2


def half_full(k: int) -> int:
    """Return the fewest ranks for which the expected density of the sum exceeds one half."""
    return math.floor(math.log(1 / 2) / math.log(1 - k / BUCKET)) + 1


def vector(k: int, rank: int, buckets: int, seed: int) -> sparcml.Stream:
    """Return ones at k random indices of every bucket; their sums are never zero."""
    rng = np.random.default_rng([seed, k, rank])
    places = np.argpartition(rng.random((buckets, BUCKET)), k)[:, :k]
    places += BUCKET * np.arange(buckets)[:, None]
    ones = np.ones(places.size, np.float32)
    return sparcml.Stream(buckets * BUCKET, np.sort(places, axis=None), ones)


def measure(kind: str, k: int, ranks: int) -> list[Row]:
    """Return rows of uniform indices, or of real gradients."""
    return gradient_supports.measure(k, ranks) if kind == "gradients" else uniform(k, ranks)


def uniform(k: int, ranks: int, buckets: int = BUCKETS, seed: int = 0) -> list[Row]:
    """Reduce over `ranks` simulated ranks, and check that all count the same nnz."""

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
            "kind": "uniform",
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
    """Return by how many standard deviations a count differs from its expectation."""
    return float(abs(row["filled"] - row["expected"]) / row["sigma"])


def answer(rows: list[Row]) -> Answer:
    """Hit if uniform counts agree with the formula, and all counts grow with the ranks."""
    at, real = (
        {(r["k"], r["ranks"]): r for r in rows if r["kind"] == kind}
        for kind in ("uniform", "gradients")
    )
    worst = max(map(off, at.values()))
    few, many = at[4, RANKS[0]], at[4, RANKS[-1]]
    last = gradient_supports.RANKS[-1]
    ours = (
        f"with 4 of 512 per rank, {few['percent']:.2f}% of the sum on {RANKS[0]} ranks, "
        f"{many['percent']:.1f}% on {RANKS[-1]}, more than half from {half_full(4)} ranks on; "
        f"{len(at)} counts within {worst:.1f} standard deviations of E[K]; real gradients on "
        f"{last} ranks: {real[4, last]['percent']:.1f}% instead of "
        f"{100 * expected(4, last) / BUCKET:.1f}%"
    )
    grow = _grows(at) and _grows(real)
    hit = grow and worst <= SIGMAS
    why = (
        "an index stays zero only if no rank selects it. Real gradients fill the sum more slowly: "
        "large values are large on many ranks"
        if hit
        else f"a count differs by {worst:.1f} standard deviations, or does not grow"
    )
    return Answer(hit, ours, why, _details(at) + _real(real))


def _grows(at: dict[tuple[int, int], Row]) -> bool:
    ks, ranks = ({key[i] for key in at} for i in (0, 1))
    counts = [[at[k, n]["filled"] for n in sorted(ranks)] for k in ks]
    return all(a < b for row in counts for a, b in pairwise(row))


def _real(at: dict[tuple[int, int], Row]) -> str:
    ranks = gradient_supports.RANKS
    head = ["k of 512, real gradients", *(f"P = {n}" for n in ranks)]
    lines = [
        [
            str(k),
            *(
                f"{at[k, n]['percent']:.2f} ({100 * expected(k, n) / BUCKET:.2f})"
                for n in ranks
            ),
        ]
        for k in gradient_supports.KEPT
    ]
    return (
        f"\nThe same for the first layer (50,176 values) of a network on Fashion-MNIST, after "
        f"{gradient_supports.STEPS} steps with error feedback, each rank with its own "
        f"images; in parentheses the expectation for uniform indices.\n\n{markdown(head, lines)}"
    )


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
        f"Density of the sum in percent: counted, and in parentheses expected, E[K] = N (1 - "
        f"(1 - k/N)^P) with N = 512. Every count is from one recursive doubling over P simulated "
        f"ranks with {buckets} buckets; it may differ by {SIGMAS:g} standard deviations, "
        f"computed from the exact variance.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot the paper's Figure 1, for uniform indices and for real gradients."""
    from .drawing import COLOURS, axes

    canvas, (ax,) = axes(1, (6.0, 3.8))
    many = np.geomspace(RANKS[0], RANKS[-1], 60)
    for k, colour in zip(KEPT, COLOURS, strict=False):
        curve = 100 * (1 - (1 - k / BUCKET) ** many)
        ax.plot(many, curve, "-", color=colour, lw=1)
        for kind, style in (("uniform", "o"), ("gradients", "x--")):
            here = [r for r in rows if (r["k"], r["kind"]) == (k, kind)]
            ranks, percent = [r["ranks"] for r in here], [r["percent"] for r in here]
            label = f"{k} of 512" if kind == "uniform" else None
            ax.plot(ranks, percent, style, color=colour, ms=4, lw=0.8, label=label)
    ax.axhline(50, color="0.5", ls="--", lw=1)
    ax.text(RANKS[0], 53, "half of all indices", color="0.4")
    ax.set(xlabel="ranks", ylabel="density of the sum (%)", xscale="log", yscale="log")
    ax.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_title("Uniform indices (points; lines: E[K]) and real gradients (crosses)")
    ax.legend(frameon=False, title="nonzeros per rank", loc="lower right")
    return canvas


CLAIM = Claim(
    number=12,
    title="The sum fills in",
    text="the sum of sparse gradients gets denser with every rank (Figure 1)",
    source="the paper on SparCML",
    how="counted: uniform indices in allreduces of simulated ranks, and real gradients",
    seed=0,
    cases=[
        *(("uniform", k, ranks) for k in KEPT for ranks in RANKS),
        *(
            ("gradients", k, ranks)
            for k in gradient_supports.KEPT
            for ranks in gradient_supports.RANKS
        ),
    ],
    measure=measure,
    answer=answer,
    figures={"fill-in": figure},
)
