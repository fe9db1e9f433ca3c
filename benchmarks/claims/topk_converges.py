"""Claim 8: top-k with error feedback finds stationary points for any k.

Sigmoids are fitted by least squares: smooth and not convex. Rows are partitioned over ranks,
which use all of their rows in each step, so that runs differ in k only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

import sparcml
from sparcml.aggregate.stats import SelectionStats

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SIZE, ROWS, RANKS, SEED = 4000, 64, 8, 1
RATE, STEPS, FALL = 60.0, 600, 100.0
RATIOS = (1.0, 0.1, 0.01, 0.001)


def problem() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the rows of each rank, with columns of decreasing weight, and their targets."""
    rng = np.random.default_rng(SEED)
    weight = np.arange(1, SIZE + 1) ** -0.5
    weight /= np.sqrt(np.sum(weight**2))
    rows = rng.standard_normal((RANKS, ROWS, SIZE)) * weight
    goals = _sigmoid(rows @ (3 * rng.standard_normal(SIZE)))
    return rows.astype(np.float32), goals.astype(np.float32)


def _sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / (1 + np.exp(-z)))


def slope(a: NDArray[Any], y: NDArray[Any], x: NDArray[Any]) -> NDArray[np.float32]:
    """Return the gradient of mean (sigmoid(a.x) - y)^2."""
    p = _sigmoid(a @ x)
    return np.asarray((2 / len(y)) * ((p - y) * p * (1 - p)) @ a, np.float32)


def measure(ratio: float) -> list[Row]:
    """Return one run: the squared norm of the full gradient before every step."""
    rows, goals = problem()
    method = sparcml.Compressed(sparcml.TopK(ratio)) if ratio < 1 else sparcml.Dense()

    def body(comm: sparcml.Communicator) -> tuple[list[Any], float]:
        a, y = rows[comm.rank], goals[comm.rank]
        x, state, points = np.zeros(SIZE, np.float32), method.init(SIZE), []
        for _ in range(STEPS):
            points.append(x)
            mean, state = method.aggregate(comm, slope(a, y, x), state)
            x = x - np.float32(RATE) * mean
        norm = comm.cache.get(SelectionStats).selected_norm
        return points, 1.0 if norm is None else norm

    points, share = sparcml.launch(body, RANKS)[0]
    every, wanted = rows.reshape(-1, SIZE), goals.reshape(-1)
    squares = [float(np.sum(np.square(slope(every, wanted, x)))) for x in points]
    best = np.minimum.accumulate(squares)
    marks = sorted({round(t) for t in np.geomspace(1, STEPS, 40)})
    fell = np.flatnonzero(best <= best[0] / FALL)
    return [
        {
            "ratio": ratio,
            "fall": float(best[0] / best[-1]),
            "steps": int(fell[0]) if fell.size else None,
            "share": share,
            "marks": marks,
            "curve": [float(f"{best[t - 1] / best[0]:.4g}") for t in marks],
        }
    ]


def answer(rows: list[Row]) -> Answer:
    """Hit if the minimum squared norm falls 100 times for every k."""
    fell = [row for row in rows if row["steps"] is not None]
    hit = len(fell) == len(rows) and all(row["fall"] >= FALL for row in rows)
    each = ", ".join(f"{row['steps']} at {row['ratio']:g}" for row in fell)
    ours = (
        f"min ‖grad‖^2 falls {FALL:g}x for {len(fell)} of {len(rows)} values of k/d, after {each} "
        f"steps; within {STEPS} steps by {min(row['fall'] for row in rows):,.0f}x or more"
    )
    why = (
        f"values that are not sent are delayed, not lost: k costs {extra(rows)} more steps "
        f"than the "
        f"dense run, which is the part that grows with d/k. A rate linear in k/d is the bound for "
        f"the worst gradients; here the k largest values have {shares(rows)} of the norm"
        if hit
        else "the norm did not fall 100 times for some k; see the table"
    )
    return Answer(hit, ours, why, _details(rows))


def extra(rows: list[Row]) -> str:
    """Return the additional steps compared with the dense run, by k/d."""
    dense = next(row["steps"] for row in rows if row["ratio"] == 1)
    sparse = (row for row in rows if row["ratio"] < 1)
    return ", ".join(f"{row['steps'] - dense} at {row['ratio']:g}" for row in sparse)


def shares(rows: list[Row]) -> str:
    """Return the fraction of the norm, by k/d."""
    sparse = (row for row in rows if row["ratio"] < 1)
    return ", ".join(f"{row['share']:.0%} ({row['ratio']:g})" for row in sparse)


def _details(rows: list[Row]) -> str:
    head = ["k/d", "steps until ‖grad‖^2 / 100", "dense steps / steps"]
    head += [f"fall in {STEPS} steps", "fraction of the norm sent", "sqrt(k/d)"]
    dense = next(row["steps"] for row in rows if row["ratio"] == 1)
    lines = [
        [
            f"{row['ratio']:g}",
            "never" if row["steps"] is None else str(row["steps"]),
            "" if row["steps"] is None else f"{dense / row['steps']:.2f}",
            f"{row['fall']:,.0f}x",
            f"{row['share']:.3f}",
            f"{np.sqrt(row['ratio']):.3f}",
        ]
        for row in rows
    ]
    return (
        f"mean (sigmoid(a.x) - y)^2 over {RANKS * ROWS} rows of {SIZE:,} columns on {RANKS} "
        f"ranks, from 0, all with the same learning rate. The columns' weights fall as "
        f"1/sqrt(j), so that gradients are uneven, as in networks. The fraction of the norm is "
        f"relative to the corrected gradient (residual + gradient), over all steps, from the "
        f"statistics of the communicator; for a vector of equal values it is sqrt(k/d)."
        f"\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot the minimum squared norm so far against steps."""
    from .drawing import COLOURS, axes

    canvas, (ax,) = axes(1, (6.0, 3.2))
    for colour, row in zip(COLOURS, rows, strict=False):
        label = f"k/d = {row['ratio']:g}" if row["ratio"] < 1 else "dense"
        ax.plot(row["marks"], row["curve"], "-", color=colour, label=label)
    ax.axhline(1 / FALL, color="0.6", lw=1, ls=":")
    ax.set(
        xlabel="steps", ylabel="minimum ‖grad‖^2 so far / first", xscale="log", yscale="log"
    )
    ax.legend(frameon=False)
    return canvas


CLAIM = Claim(
    number=8,
    title="Top-k with error feedback converges",
    text=(
        "TopK with error feedback: min ‖grad‖^2 -> 0 on smooth problems, convex or not; the "
        "rate is linear in k/d; it depends on the fraction of the gradient's norm that is sent"
    ),
    source="talks and the paper on sparse allreduce",
    how="measured, on threads",
    seed=SEED,
    cases=[(ratio,) for ratio in RATIOS],
    measure=measure,
    answer=answer,
    figures={"topk-converges": figure},
)
