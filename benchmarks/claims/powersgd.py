"""Claim 28: PowerSGD is linear, so that its factors can be summed."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

import sparcml

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SHAPE, SEED, STEPS = (256, 128), 1, 20
RANKS_OF_FACTORS, WORLDS = (1, 2, 4, 8), (2, 4, 8)
SAME, BEST = 1e-4, 1.02


def matrices(ranks: int) -> list[NDArray[np.float32]]:
    """Return matrices with singular values 1/i, as of gradients, and noise per rank."""
    rng = np.random.default_rng(SEED)
    n, m = SHAPE
    left = np.linalg.qr(rng.standard_normal((n, m)))[0]
    right = np.linalg.qr(rng.standard_normal((m, m)))[0]
    common = left * np.arange(1, m + 1.0) ** -1.0 @ right.T
    noise = rng.standard_normal((ranks, n, m)) / np.sqrt(n * m) / 4
    return list((common + noise).astype(np.float32))


def steps(inputs: list[NDArray[np.float32]], rank: int) -> tuple[list[Any], int]:
    """Return the result of each step on the same matrices, and the bytes sent per rank."""
    method = sparcml.PowerSGD(rank=rank, error_feedback=False)

    def body(comm: sparcml.Communicator) -> tuple[list[Any], int]:
        state, found = method.init(SHAPE), []
        for step in range(STEPS):
            if step == 1:
                comm.stats.reset()  # the first step also agrees on what there is
            mean, state = method.aggregate(comm, inputs[comm.rank], state)
            found.append(np.asarray(mean))
        return found, comm.stats.bytes // (STEPS - 1)

    results = sparcml.launch(body, len(inputs))
    return results[0][0], max(nbytes for _, nbytes in results)


def measure(rank: int, world: int) -> list[Row]:
    """Compare P ranks with one rank that holds the mean, and with the best approximation."""
    inputs = matrices(world)
    mean = np.mean(inputs, axis=0, dtype=np.float64)
    many, nbytes = steps(inputs, rank)
    one, _ = steps([np.asarray(mean, np.float32)], rank)
    values = np.linalg.svd(mean, compute_uv=False)
    size = float(np.linalg.norm(mean))
    n, m = SHAPE
    return [
        {
            "rank": rank,
            "world": world,
            "apart": max(_distance(a, b) for a, b in zip(many, one, strict=True)),
            "errors": [round(float(np.linalg.norm(a - mean)) / size, 6) for a in many],
            "best": float(np.linalg.norm(values[rank:])) / size,
            "nbytes": nbytes,
            "factors": 4 * rank * (n + m),
            "matrix": 4 * n * m,
        }
    ]


def _distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def answer(rows: list[Row]) -> Answer:
    """Hit if P ranks match one rank with the mean, and approach the best approximation."""
    apart = max(row["apart"] for row in rows)
    close = max(row["errors"][-1] / row["best"] for row in rows)
    ratios = [row["matrix"] / row["factors"] for row in rows]
    hit = apart <= SAME and close <= BEST
    ours = (
        f"P ranks and one rank with the mean differ by at most {apart:.1g} of the norm; after "
        f"{STEPS} steps the error is at most {close:.3f} times that of the best approximation of "
        f"its rank; r(n+m) instead of nm values: {min(ratios):.0f}x to {max(ratios):.0f}x fewer"
    )
    why = (
        "mean(M Q) = mean(M) Q, likewise for the other factor, and all ranks compute the same "
        "basis from the same sum; only rounding differs. Steps on the same matrix are subspace "
        "iteration"
        if hit
        else "ranks and their mean disagree, or the error stays above the best; see the table"
    )
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    head = ["rank r", "P", "ranks and their mean", "error, first step"]
    head += [f"error, step {STEPS}", "best of rank r", "sent per rank (B)"]
    head += ["2 (P-1)/P of the factors (B)", "matrix / factors"]
    lines = []
    for row in rows:
        due = 2 * (row["world"] - 1) / row["world"] * row["factors"]
        cells = [str(row["rank"]), str(row["world"]), f"{row['apart']:.1e}"]
        cells += [
            f"{row['errors'][0]:.4f}",
            f"{row['errors'][-1]:.4f}",
            f"{row['best']:.4f}",
        ]
        cells += [f"{row['nbytes']:,}", f"{due:,.0f}"]
        lines.append([*cells, f"{row['matrix'] / row['factors']:.1f}x"])
    n, m = SHAPE
    return (
        f"Matrices of {n} x {m} with singular values 1/i and noise that differs between ranks, "
        f"the same in each of {STEPS} steps with a warm start and without feedback. "
        f"Errors are relative, in the Frobenius norm; the best approximation of rank r is that of "
        f"the singular value decomposition. The bytes sent depend on the allreduce "
        f"algorithm: at least 2 (P-1)/P of the factors.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot error against steps, one line per rank r, with the best approximation."""
    from .drawing import COLOURS, axes

    canvas, (ax,) = axes(1, (7.0, 3.4))
    world = max(row["world"] for row in rows)
    for colour, row in zip(COLOURS, (r for r in rows if r["world"] == world), strict=False):
        turns = range(1, len(row["errors"]) + 1)
        ax.plot(turns, row["errors"], "-o", color=colour, ms=3, label=f"rank {row['rank']}")
        ax.axhline(row["best"], color=colour, ls=":", lw=1)
    ax.set(xlabel="steps on the same matrices", ylabel="relative error", yscale="log")
    ax.set_xlim(0.5, STEPS + 0.5)
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.set_yticks([0.3, 0.4, 0.5, 0.6], ["0.3", "0.4", "0.5", "0.6"])
    ax.minorticks_off()
    ax.plot([], [], ":", color="0.4", label="best of that rank")
    canvas.legend(
        *ax.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False
    )
    return canvas


CLAIM = Claim(
    number=28,
    title="PowerSGD is linear",
    text="PowerSGD is linear, so that its factors can be summed; it sends a matrix as "
    "factors of rank r",
    source="a lecture on gradient compression",
    how="measured and counted, on threads",
    seed=SEED,
    cases=list(product(RANKS_OF_FACTORS, WORLDS)),
    measure=measure,
    answer=answer,
    figures={"powersgd": figure},
)
