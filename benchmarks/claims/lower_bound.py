"""Claim 11: lower bounds of an allreduce, and the gain of sparsity alone.

Lemma 5.1 counts the values that must arrive. Lemma 5.2 is about sums that have become dense
in the paper's format of 8 bytes per entry: half of all indices are then nonzero, so half of
the dense bytes must be sent once, where a dense allreduce sends all of them twice: at most 4x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from micro.vectors import total, vector
from tables import markdown

import sparcml
from sparcml.costs import Workload, ring_nbytes
from sparcml.costs.lower_bound import lower_bound
from sparcml.stream import range_offsets

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SIZE, RANKS = 1 << 18, (16, 64)
FILLED = (0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8, 0.95)  # of the sum
PAIR, VALUE = 8, 4  # bytes of an entry in the paper's format, and of a value
DENSE_FROM = VALUE / PAIR  # where its sums become dense
CEILING = 2 / DENSE_FROM
CODES = {"ours": None, "ours, 8 bits": sparcml.QSGD(8)}
ALGORITHM = "ssar_split_allgather"


def measure(ranks: int, filled: float) -> list[Row]:
    """Return the bytes of the busiest rank at a given expected density of the sum."""
    density = 1 - (1 - filled) ** (1 / ranks)
    vectors = [vector(SIZE, density, rank, 0) for rank in range(ranks)]
    want = total(vectors)
    stored, entries = vectors[0].nnz, int(np.count_nonzero(want))
    about = {"part": "ceiling", "ranks": ranks, "size": SIZE, "stored": stored}
    workload = Workload(SIZE, VALUE, (stored,) * ranks)
    least = lower_bound(workload, result_nnz=entries).nbytes
    about |= {"filled": entries, "least_bytes": least}
    about["dense_bytes"] = ring_nbytes(ranks, VALUE * SIZE)
    rows = [{"format": "u32 + f32", "bytes": pairs(vectors, want), "wrong": 0}]
    rows += [{"format": name, **sent(vectors, want, code)} for name, code in CODES.items()]
    return [about | row for row in rows]


def pairs(vectors: list[sparcml.Stream], want: NDArray[np.float32]) -> int:
    """Return the bytes of the busiest rank with pairs of 8 bytes, or full ranges.

    Each rank sends its entries to the owner of their range, and each owner sends its sum to
    all others; every message uses the smaller of both formats, without a header.
    """
    ranks = len(vectors)
    edges = np.array(range_offsets(SIZE, ranks))
    spans = VALUE * np.diff(edges)

    def cost(indices: NDArray[Any]) -> NDArray[Any]:
        counts = np.diff(np.searchsorted(indices, edges))
        return np.asarray(np.minimum(PAIR * counts, spans))

    gathered = (ranks - 1) * cost(np.flatnonzero(want))
    split = [cost(x.indices) for x in vectors]
    busiest = [int(s.sum() - s[r] + gathered[r]) for r, s in enumerate(split)]
    return max(busiest)


def sent(vectors: list[sparcml.Stream], want: NDArray[np.float32], code: Any) -> Row:
    """Return the bytes of the busiest simulated rank, headers included."""

    def body(comm: sparcml.Communicator) -> int:
        y = comm.allreduce(vectors[comm.rank], algorithm=ALGORITHM, quantize=code)
        return int(np.count_nonzero(y.to_dense() != want)) if code is None else 0

    sim = sparcml.simulate(body, len(vectors), trace=0)
    return {"bytes": max(sim.rank_bytes), "wrong": max(sim.results)}


def gain(row: Row) -> float:
    """Return the compression ratio over the best dense allreduce."""
    return float(row["dense_bytes"] / row["bytes"])


def answer(rows: list[Row]) -> Answer:
    """Hit if no lossless row is below its bound, or above 4x once the sum is dense."""
    own = [row for row in rows if row.get("part") == "ceiling"]
    timed = [row for row in rows if "percent" in row and "algorithm" in row]
    lossless = [row for row in own if row["format"] in ("u32 + f32", "ours")]
    kept = all(row["bytes"] >= row["least_bytes"] for row in lossless)
    kept = kept and all(row["percent"] <= 100 for row in timed)
    dense = [row for row in own if row["filled"] >= DENSE_FROM * row["size"]]
    best = {
        name: max(gain(row) for row in dense if row["format"] == name)
        for name in ("u32 + f32", *CODES)
    }
    over = [row for row in own if row["format"] == "ours" and gain(row) > CEILING]
    fullest = max(over, key=lambda row: row["filled"] / row["size"], default=None)
    hit = kept and max(best["u32 + f32"], best["ours"]) <= CEILING
    ours = (
        f"{len(timed)} timed rows reach up to {max(r['percent'] for r in timed):.0f}% of the "
        f"bound, none more; once the sum is half full, u32 + f32 gains at most "
        f"{best['u32 + f32']:.2f}x over dense, our format {best['ours']:.2f}x, with 8-bit "
        f"values {best['ours, 8 bits']:.1f}x"
    )
    if fullest is not None:
        twin = next(
            row
            for row in own
            if row["format"] == "u32 + f32"
            and (row["ranks"], row["filled"]) == (fullest["ranks"], fullest["filled"])
        )
        ours += (
            f"; ours exceeds 4x up to {100 * fullest['filled'] / fullest['size']:.0f}% "
            f"({gain(fullest):.2f}x, where u32 + f32 gains {gain(twin):.2f}x)"
        )
    why = (
        "the values that must arrive take the same time in any format. If half of the values are "
        "nonzero, they are half of a dense vector: so 4x is the limit of every lossless "
        "format; pairs of 8 bytes reach half of it, and a bitmap nearly all. "
        "Quantized values exceed it"
        if hit
        else "a row is below a bound; see the tables"
    )
    return Answer(hit, ours, why, _details(own, timed))


def _details(own: list[Row], timed: list[Row]) -> str:
    formats = ("u32 + f32", *CODES)
    head = ["P", "stored (%)", "density of the sum (%)", *formats, "bound, float32"]
    points = sorted({(row["ranks"], row["filled"]) for row in own})
    lines = []
    for point in points:
        here = {r["format"]: r for r in own if (r["ranks"], r["filled"]) == point}
        row = here["ours"]
        cells = [str(row["ranks"]), f"{100 * row['stored'] / row['size']:.2f}"]
        cells += [f"{100 * row['filled'] / row['size']:.1f}"]
        cells += [f"{gain(here[name]):.2f}x" for name in formats]
        lines.append([*cells, f"{row['dense_bytes'] / row['least_bytes']:.2f}x"])
    best: dict[tuple[str, str], Row] = {}
    for row in timed:
        key = f"{row['network']}, {row['how']}", row["algorithm"]
        if key not in best or best[key]["percent"] < row["percent"]:
            best[key] = row
    closest = markdown(
        ["network", "algorithm", "maximum of the bound (%)", "at", "ranks"],
        [
            [
                *(where, name, f"{row['percent']:.0f}"),
                *(f"{100 * row['density']:g} %", str(row["ranks"])),
            ]
            for (where, name), row in sorted(best.items())
        ],
    )
    return (
        f"Compression ratio over the 2 (P-1)/P N values of a dense allreduce, at the "
        f"busiest rank of "
        f"`{ALGORITHM}`, {SIZE:,} values, uniform indices. *u32 + f32* is the paper's format: "
        f"8 bytes per entry, or the full range if that is smaller, counted on the same "
        f"vectors. *Ours* counts all bytes of simulated ranks. The bound is k + (P-2)/P K values "
        f"of 4 bytes, which is Lemma 5.1 for K = k and K = P k.\n\n{markdown(head, lines)}\n"
        f"Percent of the bound that the allreduces of claims 13 and 14 reach, with "
        f"log2 P latencies where the latency is known (simulated):\n\n{closest}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot the compression ratio against the density of the sum."""
    from .drawing import BLUE, GREEN, ORANGE, axes

    canvas, places = axes(2, (9.0, 3.6))
    colours = {"u32 + f32": ORANGE, "ours": BLUE, "ours, 8 bits": GREEN}
    for ax, ranks in zip(places, RANKS, strict=True):
        own = [r for r in rows if r.get("part") == "ceiling" and r["ranks"] == ranks]
        for name, colour in colours.items():
            here = [row for row in own if row["format"] == name]
            x = [100 * row["filled"] / row["size"] for row in here]
            ax.plot(x, [gain(row) for row in here], "-o", color=colour, ms=4, label=name)
        here = [row for row in own if row["format"] == "ours"]
        x = [100 * row["filled"] / row["size"] for row in here]
        bound = [row["dense_bytes"] / row["least_bytes"] for row in here]
        ax.plot(x, bound, "--", color="0.4", lw=1, label="bound for float32 values")
        ax.plot([100 * DENSE_FROM, 100], [CEILING] * 2, color="0.4", lw=1)
        ax.text(100, CEILING * 1.06, "4x", color="0.4", ha="right")
        ax.set(xlabel="density of the sum (%)", yscale="log", title=f"{ranks} ranks")
        ax.set_yticks([1, 2, 4, 8, 16, 32], ["1x", "2x", "4x", "8x", "16x", "32x"])
        ax.legend(frameon=False)
    places[0].set_ylabel("compression ratio")
    canvas.suptitle("Bytes of the busiest rank, counted on simulated ranks", fontsize=9)
    return canvas


CLAIM = Claim(
    number=11,
    title="Lower bounds, and the gain of sparsity alone",
    text=(
        "every allreduce takes log2 P latencies and the values that must arrive (Lemma 5.1); "
        "if the sum gets dense, sparsity alone gains at most 2/kappa = 4x (Lemma 5.2)"
    ),
    source="a talk and the paper on SparCML",
    how="counted on simulated ranks; times of claims 13 and 14, emulated and simulated",
    seed=0,
    cases=[(ranks, filled) for ranks in RANKS for filled in FILLED],
    measure=measure,
    answer=answer,
    figures={"ceiling": figure},
    also={
        "claim-13": "python benchmarks/run_claims.py 13",
        "claim-14": "python benchmarks/run_claims.py 14",
        "micro-gige": "make bench-micro",
    },
)
