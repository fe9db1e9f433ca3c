"""Claim 17: linear models against Spark MLlib.

The paper compared on a cluster, with Spark's own layers and its links; here both run on one
machine, four threads against four processes, and Spark has its best solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers.table import NEAR, best, fastest
from tables import markdown

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = "URL-like"
FLOOR, GOAL = 31, 63  # the paper's ratios


def measure(data: str, peer: str) -> list[Row]:
    """Return the row of one program, run in its own process."""
    from run_linear_peers import compare, problems

    return compare(data, problems(quick=False)[data], [peer], quick=False)


def answer(rows: list[Row]) -> Answer:
    """Hit if we reach Spark's final loss, plus one percent, as many times faster."""
    ours, spark = (next(r for r in rows if r["peer"] == p) for p in ("ours_ranks", "spark"))
    level = NEAR * best(spark)
    theirs, mine = fastest(spark, level), fastest(ours, level)
    if theirs is None or mine is None:
        told = f"ours does not reach a validation loss of {level:.4f}"
        return Answer(
            False, told, "it needs more epochs or another learning rate", _details(rows)
        )
    ratio = theirs.seconds / mine.seconds
    reading = spark["reading"] / ours["reading"]
    told = (
        f"{ratio:.0f}x: {theirs.seconds:.1f} s and {mine.seconds:.2f} s to a validation loss "
        f"of {level:.4f}; reading text {reading:.0f}x"
    )
    why = (
        "L-BFGS computes full gradients and reduces them as dense vectors; ours takes steps on "
        "batches with sparse allreduce, or on single rows and averages weights twice per epoch"
    )
    if ratio < FLOOR:
        why = f"{why}; our four processes share two cores, and one process is faster"
    return Answer(ratio >= FLOOR, told, why, _details(rows))


def _details(rows: list[Row]) -> str:
    spark = next(r for r in rows if r["peer"] == "spark")
    lines = []
    for row in rows:
        for curve in row["curves"]:
            reached = fastest({**row, "curves": [curve]}, NEAR * best(spark))
            seconds = f"{reached.seconds:.2f}" if reached else "not reached"
            passes = str(reached.passes) if reached else ""
            least = f"{min(curve['losses']):.4f}"
            lines.append([row["name"], f"`{curve['setting']}`", least, passes, seconds])
    head = ["program", "setting", "best loss", "epochs", "seconds to Spark's best + 1 %"]
    about = rows[0]
    return (
        f"Logistic regression on {about['rows']:,} URL-like rows with {about['features']:,} "
        f"features, with the loss on {about['held_out_rows']:,} others after each epoch. Spark has "
        f"local[4], a heap of 9 GB, rows cached in memory, and one short fit beforehand that is "
        f"not timed; ours has four processes over MPI, and takes the same steps as one process, "
        f"or local ones. "
        f"Reading is not included in the times. More programs: [linear.md](linear.md).\n\n"
        f"{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot loss against seconds."""
    from .drawing import BLUE, ORANGE, axes

    canvas, (ax,) = axes(1, (6.4, 3.8))
    colours = {"ours_ranks": BLUE, "spark": ORANGE}
    for row in rows:
        for number, curve in enumerate(row["curves"]):
            name = row["name"] if number == 0 else None
            colour = colours[row["peer"]]
            ax.plot(curve["seconds"], curve["losses"], "o-", color=colour, ms=3, label=name)
    ax.set(xlabel="seconds of training", ylabel="validation loss", xscale="log")
    ax.set_title("URL-like rows, four threads or processes, measured")
    ax.legend(frameon=False, fontsize=8)
    return canvas


CLAIM = Claim(
    number=17,
    title="Linear models against Spark",
    text="on URL, 31x to 63x faster than Spark, depending on its stack",
    source="the paper on SparCML",
    how="measured, one machine",
    seed=0,
    cases=[(DATA, "ours_ranks"), (DATA, "spark")],
    measure=measure,
    answer=answer,
    figures={"spark": figure},
)
