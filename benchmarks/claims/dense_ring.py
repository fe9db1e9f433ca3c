"""Claim 14: where a dense allreduce is faster than the best sparse one, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micro.rows import SPARSE, chosen, dense, first
from micro.simulated import LINKS
from micro.simulated import measure as simulate
from micro.vectors import FEW, SIZE
from tables import markdown

from .base import Answer, Claim, Row
from .orderings import SIMULATED_DENSE, share

if TYPE_CHECKING:
    from collections.abc import Sequence

FAST, BARE = "aries", "aries" + LINKS
SLOW = "1gbit"
RANKS = (2, 4, 8)
DENSITIES = (0.001, FEW, 0.03, 0.1, 0.2, 0.3)
SPARSE_TO = 0.1  # more than this, and the sum of 8 ranks is mostly full
MARGIN = 1.3
SHORTER = 1 << 20  # as in claim 13, ratios hardly depend on it
CANDIDATES = ("ssar_recursive_double", "ssar_split_allgather")


def measure(network: str, ranks: int, density: float) -> list[Row]:
    """Return the rows of the sparse candidates, or of the dense ones; one data set."""
    names = SIMULATED_DENSE if density == 1 else CANDIDATES
    return simulate(network, ranks, SHORTER, density, names, 1)


def lead(rows: Sequence[Row], ranks: int, density: float) -> float:
    """Return the speedup of the best dense allreduce over the best sparse one."""
    here = [r for r in rows if r["ranks"] == ranks and r["density"] == density]
    best = min(r["p50"] for r in here if r["algorithm"] in SPARSE)
    return float(best / dense(rows, ranks)["p50"])


def answer(rows: list[Row]) -> Answer:
    """Hit if dense leads by less than 30 % on Aries, and never on GigE."""
    leads = {
        (network, ranks, density): lead(
            chosen(rows, network=network, size=SHORTER), ranks, density
        )
        for network in (FAST, BARE)
        for ranks in RANKS
        for density in DENSITIES
    }
    usual = max(v for (n, _, d), v in leads.items() if n == FAST and d <= SPARSE_TO)
    most = max(v for (n, _, _), v in leads.items() if n == FAST)
    bare = max(v for (n, _, _), v in leads.items() if n == BARE)
    slow = chosen(rows, network=SLOW, size=SIZE)
    pairs = sorted({(r["ranks"], r["density"]) for r in slow if r["algorithm"] in SPARSE})
    behind = [1 / lead(slow, *pair) for pair in pairs]
    ahead = (
        f"is at most {100 * (usual - 1):.0f}% faster" if usual > 1 else "is never faster"
    )
    ours = (
        f"Aries, 2 to 8 ranks: the best dense allreduce {ahead} than the best sparse one up to a "
        f"density of {share(SPARSE_TO)}, and needs at least {1 / most:.2f} of its time at "
        f"{share(DENSITIES[-1])}; on GigE sparse is {min(behind):.1f} to "
        f"{max(behind):.0f} times faster in {len(pairs)} cases"
    )
    hit = most < MARGIN and min(behind) > 1
    alone = "never faster" if bare <= 1 else f"at most {bare:.2f}x faster"
    why = (
        f"on fast links the processors decide: one core per rank, as simulated, encodes and "
        f"merges the entries of a dense vector more slowly than it adds them; without that cost "
        f"dense is {alone}. The talk does not state the density of its comparison"
    )
    if min(behind) <= 1:
        why = f"sparse is not always faster on GigE; {why}"
    return Answer(hit, ours, why, _details(leads, slow, pairs, behind))


def _details(
    leads: dict[tuple[str, int, float], float],
    slow: Sequence[Row],
    pairs: Sequence[tuple[int, float]],
    behind: Sequence[float],
) -> str:
    head = ["network", "ranks", *(share(d) for d in DENSITIES)]
    lines = [
        [n, str(ranks), *(f"{leads[n, ranks, d]:.2f}" for d in DENSITIES)]
        for n in (FAST, BARE)
        for ranks in RANKS
    ]
    emulated = [
        [str(ranks), share(density), f"{times:.1f}x", name]
        for (ranks, density), times in zip(pairs, behind, strict=True)
        for name in [
            first([r for r in slow if (r["ranks"], r["density"]) == (ranks, density)])
        ]
    ]
    return (
        f"Simulated, 1 M values: time of the best sparse allreduce / time of the best dense one "
        f"(our ring or the engine's), by density per rank. Above 1, dense is "
        f"faster.\n\n{markdown(head, lines)}\nEmulated GigE, 16 M values, against the "
        f"fastest of our ring, gloo and MPI:\n\n"
        f"{markdown(['ranks', 'density', 'speedup of sparse', 'algorithm'], emulated)}"
    )


CLAIM = Claim(
    number=14,
    title="Dense and sparse on fast and slow networks",
    text=(
        "on Aries and few nodes a dense ring is faster, by less than 30 %; on GigE sparse "
        "always wins"
    ),
    source="a talk on SparCML",
    how="Aries simulated, GigE emulated",
    seed=0,
    cases=[
        (network, ranks, density)
        for network in (FAST, BARE)
        for ranks in RANKS
        for density in (*DENSITIES, 1.0)
    ],
    measure=measure,
    answer=answer,
    figures={},
    also={"micro-gige": "make bench-micro"},
)
