"""Claim 13: which sparse allreduce is first, against density and against ranks.

The paper's micro-benchmarks: 16 M values on 8 ranks, and 4 of 512 stored on more and more
ranks. Aries is simulated here; what is emulated is measured by run_micro.py.
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
    """All algorithms that can be asked for it."""
    names = SIMULATED_DENSE if density == 1 else SPARSE
    return simulate(FAST, ranks, size, density, names, sets)


def cases() -> list[tuple[int, int, float, int]]:
    """Density, then ranks at one density; dense sums once each, as places do not matter.

    Data sets of millions of entries differ by less than any figure shows: one is enough.
    """
    found = [(RANKS, SIZE, density, SETS) for density in DENSITIES if density <= FEW]
    found += [(RANKS, SIZE, density, 1) for density in DENSITIES if density > FEW]
    found += [(ranks, SIZE, 1.0, 1) for ranks in (*FEWER, RANKS)]
    found += [(ranks, SIZE, FEW, 1) for ranks in FEWER]
    found += [(ranks, SMALL, density, 1) for ranks in MANY for density in (FEW, 1.0)]
    return found


def answer(rows: list[Row]) -> Answer:
    """Hit if each ordering shows where the paper has it."""
    rows = [row for row in rows if row["size"] == SIZE or row["ranks"] in MANY]
    found = orderings(rows)
    held = [text for text, ok, _ in found if ok]
    ours = f"{len(held)} of {len(found)} orderings: {'; '.join(held)}"
    missing = [f"not {text}: {why}" for text, ok, why in found if not ok]
    why = "; ".join(missing) or (
        "few rounds count for short messages, bytes for long ones, and processors where "
        "links are fast. That DSAR is first shows in real runs only: on the wire both send "
        "the same, as our format codes what is not zero in either"
    )
    return Answer(not missing, ours, why, _details(rows, found))


def orderings(rows: list[Row]) -> list[tuple[str, bool, str]]:
    """(what the paper says, whether it is so, what is if not)."""
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
    text = f"DSAR at 10 %, as {stored:.0f} % of the sum are stored (emulated GigE)"
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
        "it never is, or not only there",
    )


def _sparse_always(slow: Sequence[Row]) -> tuple[str, bool, str]:
    best = dense(slow, RANKS)
    tried = sorted({row["density"] for row in slow if row["algorithm"] in SPARSE})
    lost = [d for d in tried if _best(slow, d) >= best["p50"]]
    text = f"sparse before dense at every density to {share(tried[-1])} (emulated GigE)"
    return text, not lost, f"dense is, at {', '.join(map(share, lost))}"


def _best(rows: Sequence[Row], density: float) -> float:
    return min(
        float(row["p50"])
        for row in rows
        if row["density"] == density and row["algorithm"] in SPARSE
    )


def share(density: float) -> str:
    """As people write it."""
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
        f"{told}\nMedian (quartiles) in ms, and the percent of the lower bound of claim 11. "
        f"Emulated: {SETS} data sets, 10 runs of each, on 2 cores that all ranks share, which "
        f"is why {most} ranks are the most; "
        f"dense sums with one data set. Simulated: every run of a data set takes the same, so "
        f"there is one of each; {SETS} data sets up to 4/512 on 8 ranks, one elsewhere; "
        f"with 1.5 us of latency, 80 Gbit/s, and 2 ns to code, 3.5 ns to "
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
    title="Which sparse allreduce is first",
    text=(
        "recursive doubling wins for small data, split and allgather for larger, DSAR when "
        "the sum gets dense, and a dense sum at high density (Figure 3: 16 M values, 8 nodes, "
        "Aries and GigE)"
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
