"""Claim 25: many noisy steps or few exact ones, far from the optimum and close to it.

Logistic regression on the mails of the package. A step on n rows costs n gradient
evaluations. Coordinate descent computes the optimum beforehand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tables import markdown

import sparcml
from sparcml.linear import LOSSES, SCD, SGD, Constant, InverseDecay, Penalty, spam
from sparcml.linear.solvers.objective import objective

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparcml.linear import Rows, SGDState, SolverProgress
    from sparcml.linear.solvers.learning_rate import LearningRate

PENALTY = Penalty(l2=0.01)
MINI = 64
# Batch and rate: 1 / curvature for exact steps; smaller where gradients are noisy.
KINDS: dict[str, tuple[int | None, LearningRate, int]] = {
    "batch": (None, Constant(4.0), 200),
    "mini-batch": (MINI, Constant(1.0), 100),
    "stochastic": (1, Constant(0.25), 100),
    "stochastic, falling rates": (1, InverseDecay(1.0, decay=4.0), 100),
}
MAILS = 2419
LOOKS = (64, 320, MAILS, 10 * MAILS, 90 * MAILS)  # evaluations, in the table
FAR, CLOSE = 2, 4  # which of these the verdict is about


@cache
def problem() -> tuple[Rows, float]:
    """Return the rows in float64 with their active columns, and the minimum objective."""
    rows = spam().train
    used, places = np.unique(rows.indices, return_inverse=True)
    rows = replace(
        rows,
        indices=places.astype(np.uint32),
        values=rows.values.astype(np.float64),
        features=used.size,
    )
    with sparcml.world() as comm:
        found = SCD("logistic", PENALTY, tol=1e-13).run(comm, rows)
    return rows, found.objectives[-1]


def measure(kind: str, passes: int | None = None) -> list[Row]:
    """Return the gap to the optimum after increasing numbers of evaluations."""
    rows, least = problem()
    batch, steps, usual = KINDS[kind]
    solver = SGD(
        "logistic", PENALTY, steps, batch or rows.total, passes or usual, patience=10**9
    )
    loss, found = LOSSES["logistic"], []
    due = [1.0]

    with sparcml.world() as comm:

        def look(_: SolverProgress, state: SGDState) -> None:
            if state.seen < due[0]:
                return
            due[0] = state.seen * 1.25
            value = objective(comm, rows, loss, PENALTY, state.weights, state.intercept)
            found.append({"kind": kind, "evaluations": state.seen, "gap": value - least})

        solver.run(comm, rows, watch=look, every=max(1, 64 // solver.batch_size))
    return found


def at(rows: list[Row], kind: str, evaluations: int) -> float | None:
    """Return the last gap before a number of evaluations; None before the first step."""
    known = [
        r["gap"] for r in rows if r["kind"] == kind and r["evaluations"] <= evaluations
    ]
    return float(known[-1]) if known else None


def answer(rows: list[Row]) -> Answer:
    """Hit if stochastic steps lead first and batch steps last."""
    gaps = {kind: [at(rows, kind, n) for n in LOOKS] for kind in KINDS}
    batch, mini, noisy = (gaps[kind] for kind in ("batch", "mini-batch", "stochastic"))
    far = (batch[FAR] or 0.0) / (noisy[FAR] or 1.0)
    near = (noisy[CLOSE] or 0.0) / max(batch[CLOSE] or 1.0, 1e-16)
    between = (noisy[CLOSE] or 0.0) > (mini[CLOSE] or 0.0) > (batch[CLOSE] or 1.0)
    ours = (
        f"after one epoch the gap of stochastic steps is {far:.1f}x smaller than that of one "
        f"batch step; after 90 epochs the gap of batch steps is {near:,.0f}x smaller"
    )
    why = (
        "noisy steps are cheap, and good enough far from the optimum; close to it their noise "
        "remains, unless learning rates decay or batches grow"
    )
    return Answer(far > 3 and near > 100 and between, ours, why, _details(gaps))


def _details(gaps: dict[str, list[float | None]]) -> str:
    head = ["steps", *(f"{n:,}" for n in LOOKS)]
    lines = [
        [kind, *("" if gap is None else f"{gap:.1e}" for gap in found)]
        for kind, found in gaps.items()
    ]
    return (
        f"Measured: logistic regression with l2 = {PENALTY.l2} on {MAILS:,} mails, in float64, "
        f"one process. The table shows the objective above its minimum, by number of evaluations "
        f"of a row's gradient: {MAILS:,} per step of the full batch, {MINI} of a mini-batch, 1 of "
        f"stochastic steps. Learning rates are constant (4, 1 and 0.25), or decay as 1 / (1 "
        f"+ 4 epochs). "
        f"Asynchronous execution is not measured: steps follow each other."
        f"\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot the gap of all methods against evaluations."""
    from .drawing import BLUE, GREEN, ORANGE, PINK, axes

    canvas, (ax,) = axes(1, (7.0, 4.2))
    looks = zip(KINDS, (BLUE, GREEN, ORANGE, PINK), "so^v", strict=True)
    for kind, colour, mark in looks:
        found = [row for row in rows if row["kind"] == kind and row["gap"] > 1e-13]
        ax.plot(
            [row["evaluations"] for row in found],
            [row["gap"] for row in found],
            f"{mark}-",
            color=colour,
            ms=3,
            lw=1.2,
            label=kind,
        )
    ax.axvline(MAILS, color="0.6", lw=1, ls=":")
    ax.text(MAILS * 1.1, 3e-12, "one pass", color="0.4", fontsize=8)
    ax.set(xscale="log", yscale="log", ylim=(1e-12, 1))
    ax.set(xlabel="evaluations of a row's gradient", ylabel="objective above its minimum")
    ax.set_title("Far from the optimum noise is cheap; close to it, it remains")
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    return canvas


CLAIM = Claim(
    number=25,
    title="Batch and stochastic steps",
    text=(
        "stochastic steps are more frequent and noisy: better far from the optimum, while "
        "close to it batch steps win; asynchronous execution is of the first type"
    ),
    source="a lecture on parallel training",
    how="measured",
    seed=0,
    cases=[(kind,) for kind in KINDS],
    measure=measure,
    answer=answer,
    figures={"step-sizes": figure},
)
