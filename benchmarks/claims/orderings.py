"""Claim 13: the fastest sparse allreduce by density and by number of ranks.

The paper's micro-benchmarks: 16 M values on 8 ranks, and 4 of 512 per rank on a growing number
of ranks. Aries is simulated here; run_micro.py measures the emulated network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from micro.rows import DENSE, SHORT, SPARSE, chosen, dense, first
from micro.simulated import measure as simulate
from micro.vectors import FEW, SETS, SIZE
from tables import markdown

from . import micro_figures
from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

DENSITIES = (1e-6, 1e-5, 1e-4, 1e-3, FEW, 0.03, 0.1, 0.3)
RANKS = 8
FEWER = (2, 4, 16)  # beside the 8 ranks above
SMALL, MANY = 1 << 20, (4, 16, 64)  # more ranks do with shorter vectors
SLOW, FAST = "1gbit", "aries"
SIMULATED_DENSE = ("ring", "native")


def measure(ranks: int, size: int, density: float, sets: int) -> list[Row]:
    """Return the rows of all algorithms."""
    names = SIMULATED_DENSE if density == 1 else SPARSE
    return simulate(FAST, ranks, size, density, names, sets)


def cases() -> list[tuple[int, int, float, int]]:
    """Return the cases: densities, then ranks at one density; dense allreduces once each.

    Data sets of millions of entries differ by less than any figure shows: one is enough.
    """
    found = [(RANKS, SIZE, density, SETS) for density in DENSITIES if density <= FEW]
    found += [(RANKS, SIZE, density, 1) for density in DENSITIES if density > FEW]
    found += [(ranks, SIZE, 1.0, 1) for ranks in (*FEWER, RANKS)]
    found += [(ranks, SIZE, FEW, 1) for ranks in FEWER]
    found += [(ranks, SMALL, density, 1) for ranks in MANY for density in (FEW, 1.0)]
    return found


def answer(rows: list[Row]) -> Answer:
    """Hit if each ordering is that of the paper."""
    rows = [row for row in rows if row["size"] == SIZE or row["ranks"] in MANY]
    found = orderings(rows)
    held = [text for text, ok, _ in found if ok]
    ours = f"{len(held)} of {len(found)} orderings: {'; '.join(held)}"
    missing = [f"not {text}: {why}" for text, ok, why in found if not ok]
    why = "; ".join(missing) or (
        "the number of rounds decides for short messages, bytes for long ones, and processors on "
        "fast links. DSAR is first in real runs only: on the wire both send "
        "the same bytes, because our format encodes only nonzeros in either"
    )
    return Answer(not missing, ours, why, _details(rows, found))


def orderings(rows: list[Row]) -> list[tuple[str, bool, str]]:
    """Return (ordering of the paper, whether it holds, the actual ordering if not)."""
    slow = chosen(rows, network=SLOW, ranks=RANKS, size=SIZE)
    fast = chosen(rows, network=FAST, ranks=RANKS, size=SIZE)
    found = []
    for where, here in (("emulated GigE", slow), ("simulated Aries", fast)):
        sparsest = [row for row in here if row["density"] == here[0]["density"]]
        name = first(sparsest)
        found.append(
            (
                f"recursive doubling first at {share(here[0]['density'])} ({where})",
                name == "ssar_recursive_double",
                SHORT[name],
            )
        )
        middle = [row for row in here if row["density"] == FEW]
        name = first(middle)
        found.append(
            (f"SSAR split at 4/512 ({where})", name == "ssar_split_allgather", SHORT[name])
        )
    full = [row for row in slow if row["density"] == 0.1]
    name, stored = first(full), 100 * full[0]["filled"] / SIZE
    text = f"DSAR at 10 %, where the sum has a density of {stored:.0f} % (emulated GigE)"
    found.append((text, name == "dsar_split_allgather", SHORT[name]))
    found.append(_dense_last(fast))
    found.append(_sparse_always(slow))
    return found


def _dense_last(fast: Sequence[Row]) -> tuple[str, bool, str]:
    best = dense(fast, RANKS)
    wins = [d for d in DENSITIES if best["p50"] < _best(fast, d)]
    ok = bool(wins) and wins == list(DENSITIES[-len(wins) :])
    above = share(wins[0]) if wins else "no density"
    return (
        f"dense from {above} on (simulated Aries)",
        ok,
        "dense is never first, or not only there",
    )


def _sparse_always(slow: Sequence[Row]) -> tuple[str, bool, str]:
    best = dense(slow, RANKS)
    tried = sorted({row["density"] for row in slow if row["algorithm"] in SPARSE})
    lost = [d for d in tried if _best(slow, d) >= best["p50"]]
    text = f"sparse before dense at every density up to {share(tried[-1])} (emulated GigE)"
    return text, not lost, f"dense is first at {', '.join(map(share, lost))}"


def _best(rows: Sequence[Row], density: float) -> float:
    return min(
        float(row["p50"])
        for row in rows
        if row["density"] == density and row["algorithm"] in SPARSE
    )


def share(density: float) -> str:
    """Return a density as text."""
    return "4/512" if density == FEW else f"{100 * density:g} %"


def _details(rows: list[Row], found: list[tuple[str, bool, str]]) -> str:
    told = markdown(
        ["ordering", "holds", "else first"],
        [[text, "yes" if ok else "no", "" if ok else why] for text, ok, why in found],
    )
    parts = [
        ("Emulated GigE, 16 M values", {"network": SLOW, "size": SIZE}),
        ("Simulated Aries, 16 M values", {"network": FAST, "size": SIZE}),
        ("Simulated Aries, 1 M values", {"network": FAST, "size": SMALL}),
    ]
    tables = [
        f"### {title}\n\n{_table(chosen(rows, **where))}"
        for title, where in parts
        if chosen(rows, **where)
    ]
    most = max(row["ranks"] for row in rows if row["how"] == "emulated")
    return (
        f"{told}\nMedian (quartiles) in ms, and percent of the lower bound of claim 11. "
        f"Emulated: {SETS} data sets, 10 runs each, on 2 cores that all ranks share, which "
        f"limits the runs to {most} ranks; "
        f"dense allreduces with one data set. Simulated: every run of a data set takes the same "
        f"time, so there is one each; {SETS} data sets up to 4/512 on 8 ranks, one elsewhere; "
        f"latency 1.5 us, bandwidth 80 Gbit/s, and 2 ns to encode, 3.5 ns to "
        f"merge and 0.5 ns to write an entry.\n\n" + "\n".join(tables)
    )


def _table(rows: list[Row]) -> str:
    names = [n for n in (*SPARSE, *DENSE) if any(r["algorithm"] == n for r in rows)]
    points = sorted({(row["ranks"], row["density"]) for row in rows})
    lines = []
    for ranks, density in points:
        here = {
            r["algorithm"]: r
            for r in rows
            if (r["ranks"], r["density"]) == (ranks, density)
        }
        cells = [_cell(here.get(name)) for name in names]
        lines.append([str(ranks), share(density), *cells])
    return markdown(["ranks", "stored", *(SHORT[name] for name in names)], lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    middle, low, high = (row[key] / 1e3 for key in ("p50", "p25", "p75"))
    spread = "" if row["runs"] == 1 else f" ({low:.3g} to {high:.3g})"
    return f"{middle:.3g}{spread}, {row['percent']:.0f} %"


CLAIM = Claim(
    number=13,
    title="The fastest sparse allreduce",
    text=(
        "recursive doubling is fastest for small data, split and allgather for larger, DSAR if "
        "the sum gets dense, and a dense allreduce at high density (Figure 3: 16 M values, "
        "8 nodes, Aries and GigE)"
    ),
    source="a talk and the paper on SparCML",
    how="GigE emulated, Aries simulated",
    seed=0,
    cases=cases(),
    measure=measure,
    answer=answer,
    figures={
        "time-density": micro_figures.densities,
        "time-ranks": micro_figures.ranks,
    },
    also={"micro-gige": "make bench-micro"},
)
