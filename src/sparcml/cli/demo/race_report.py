"""Sparse against dense communication: the table, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import typer

from sparcml.cli.fit_progress import number
from sparcml.cli.plot import BLUE, GREY, ORANGE, figure, plain

if TYPE_CHECKING:
    from pathlib import Path

    from sparcml.cli.demo.race import Run

HEADINGS = (
    "sums",
    "passes",
    "seconds\na pass",
    "of these,\ncommunicating",
    "bytes of a\nrank a pass",
    "held-out\nloss",
    "right",
)


def show(runs: list[Run]) -> None:
    """A row each, and how they compare."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        left = heading == "sums"
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for run in runs:
        table.add_row(*_cells(run))
    sparse, dense = runs
    table.add_section()
    table.add_row(
        "dense / sparse",
        "",
        f"{a_pass(dense) / a_pass(sparse):.1f}x",
        f"{talking(dense) / max(talking(sparse), 1e-9):.1f}x",
        f"{sent(dense) / max(sent(sparse), 1):.1f}x",
        style="bold",
    )
    Console(highlight=False).print(table)
    typer.echo("(dense: MPI's own sum; its bytes are those of a ring, for MPI counts none)")


def a_pass(run: Run) -> float:
    """The seconds of one."""
    return run.history.seconds / len(run.history.epochs)


def talking(run: Run) -> float:
    """Those in communication."""
    return run.history.communication_seconds / len(run.history.epochs)


def sent(run: Run) -> float:
    """Bytes of a pass."""
    return run.history.bytes / len(run.history.epochs)


def _cells(run: Run) -> list[str]:
    return [
        run.communication,
        str(len(run.history.epochs)),
        f"{a_pass(run):.2f}",
        f"{talking(run):.2f}",
        f"{number(sent(run))}B",
        f"{run.history.epochs[-1].validation_loss:.3f}",
        f"{run.accuracy:.1%}",
    ]


def draw(path: Path, runs: list[Run], where: str) -> None:
    """Held-out loss by time, and what a pass takes."""
    picture = figure(10, 4.2)
    picture.suptitle(f"Logistic regression on mails, 4 ranks {where}", fontsize=12)
    left, right = picture.subplots(1, 2, width_ratios=(1.25, 1))
    for run, colour, mark in zip(runs, (BLUE, ORANGE), "os", strict=True):
        passes = run.history.epochs
        ends = np.cumsum([0.0, *(each.seconds for each in passes)])
        losses = [
            np.log(2.0),
            *(each.validation_loss for each in passes),
        ]  # weights of zero first
        label = f"{run.communication}, {len(passes)} passes: {run.accuracy:.1%} right"
        left.plot(ends, losses, f"{mark}-", color=colour, ms=4, label=label)
    left.set(xlabel="seconds of training", ylabel="loss on held-out mails")
    left.set_title("A mark is a pass", fontsize=10)
    left.set_xlim(left=0)
    left.set_ylim(bottom=0)
    left.legend(frameon=False)
    names = [run.communication for run in runs]
    talks = np.array([talking(run) for run in runs])
    works = np.array([a_pass(run) for run in runs]) - talks
    right.barh(names, works, color=GREY, label="computing")
    right.barh(names, talks, left=works, color=[BLUE, ORANGE], label="communicating")
    for row, run in enumerate(runs):
        text = f" {a_pass(run):.2f} s, {sent(run) / 1e6:,.0f} MB a rank"
        inside = a_pass(run) > 0.5 * max(map(a_pass, runs))
        right.text(
            0.0 if inside else a_pass(run), row - 0.46 if inside else row, text, va="center"
        )
    right.invert_yaxis()
    right.set(xlabel="seconds of a pass (grey: computing)")
    right.set_title("Time and bytes of a pass", fontsize=10)
    for axes in (left, right):
        plain(axes)
    right.grid(visible=False)
    picture.savefig(path, dpi=150)
