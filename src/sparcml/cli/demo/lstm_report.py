"""Dense against compressed reading: the table, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sparcml.cli.fit_progress import number
from sparcml.cli.plot import BLUE, ORANGE, figure, plain

if TYPE_CHECKING:
    from pathlib import Path

    from sparcml.cli.demo.lstm_reader import Reading


def show(readings: list[Reading]) -> None:
    """A row each, and how they compare."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    headings = ("sums", "steps", "seconds", "ms a step", "bytes of a\nrank a step", "loss")
    for heading in headings:
        left = heading == "sums"
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for one in readings:
        table.add_row(
            one.sums,
            str(len(one.losses)),
            f"{one.seconds[-1]:.1f}",
            f"{1e3 * one.step:.0f}",
            f"{number(one.sent)}B",
            f"{one.points()[-1][1]:.2f}",
        )
    dense, sparse = readings
    table.add_section()
    table.add_row(
        "dense / compressed",
        "",
        "",
        f"{dense.step / sparse.step:.1f}x",
        f"{dense.sent / sparse.sent:.0f}x",
        style="bold",
    )
    Console(highlight=False).print(table)
    typer.echo("(dense: plain DDP over gloo; its bytes are those of a ring)")


def draw(path: Path, readings: list[Reading], where: str) -> None:
    """Both curves by time."""
    picture = figure(8, 4.2)
    axes = picture.subplots()
    for one, colour, mark in zip(readings, (ORANGE, BLUE), "so", strict=True):
        label = (
            f"{one.sums}: {len(one.losses)} steps of {1e3 * one.step:.0f} ms, "
            f"{number(one.sent)}B of a rank each"
        )
        axes.plot(
            *zip(*one.points(), strict=True), f"{mark}-", color=colour, ms=4, label=label
        )
    values = readings[0].values / 1e6
    axes.set(xlabel="seconds of training", ylabel="loss (nats a character)")
    axes.set_title(
        f"An LSTM of {values:.1f} M parameters reads Moby-Dick, 4 ranks {where}",
        fontsize=11,
    )
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    plain(axes)
    picture.savefig(path, dpi=150)
