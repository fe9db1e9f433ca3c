"""`sparcml demo`: sparse sums on four ranks, against the dense one, in one table."""

import os
import sys
from typing import Annotated, Any

import typer

import sparcml
from sparcml.cli.bench.common import Row, parse_size
from sparcml.cli.bench.report import Progress, label
from sparcml.cli.bench.sums import OURS, Trial
from sparcml.cli.bench.vectors import Problem
from sparcml.cli.start import start_self, under_launcher

RANKS = 4
DENSE = "mpi_allreduce"
DENSITIES = (0.001, 0.01, 0.1)
SECONDS = 0.05  # for each row
HEADINGS = (
    "density",
    "nnz",
    "algorithm",
    "bytes of\ndense",
    "time\n(ms)",
    "vs MPI",
    "wrong",
)
NEXT = (
    "Ranks share memory here; on networks bytes decide. More: sparcml bench allreduce",
    "What happens here, step by step: docs/tour.md",
)


def demo(
    size: Annotated[str, typer.Option(help="Values in each vector.")] = "4M",
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
) -> None:
    """Sum sparse vectors on 4 ranks with every algorithm, and check each sum."""
    values = parse_size(size)
    if under_launcher():
        raise typer.Exit(_run(values, size, progress))
    if sys.stdout.isatty():
        os.environ.setdefault("FORCE_COLOR", "1")  # the ranks write to a pipe
    shown = ["--progress"] if sys.stderr.isatty() else []
    raise typer.Exit(start_self("sparcml demo", RANKS, ["--size", size, *shown]))


def _run(values: int, size: str, progress: bool) -> int:
    """On each rank; the first one reports."""
    with sparcml.world() as comm:
        first = comm.rank == 0
        if first:
            typer.echo(
                f"{comm.size} MPI ranks on this machine sum vectors of {size} float32; "
                f"NumPy checks each sum.\n"
            )
        doing = Progress(progress and first)
        rows = [row for part in DENSITIES for row in _measure(comm, values, part, doing)]
        wrong = any(row["wrong"] for row in rows)
        if first:
            _show(rows)
            typer.echo("\n" + "\n".join(NEXT))
            if wrong:
                typer.echo("sparcml demo: not every sum is right", err=True)
        return int(wrong)


def _measure(
    comm: sparcml.Communicator, values: int, density: float, doing: Progress
) -> list[Row]:
    trial = Trial(comm, Problem(values, density))
    rows = []
    for name in (DENSE, *OURS):
        doing.show(f"{density:.1%}, {name}")
        rows.append(trial.measure(name, seconds=SECONDS))
    return rows


def _show(rows: list[Row]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        left = heading == "algorithm"
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for part in DENSITIES:
        group = [row for row in rows if row["density"] == 100 * part]
        best = max(row["speedup"] for row in group)
        for row in group:
            style = "bold green" if row["speedup"] == best else None
            table.add_row(*_cells(row), style=style, end_section=row is group[-1])
    Console(highlight=False).print(table)


def _cells(row: dict[str, Any]) -> list[str]:
    dense = row["ratio"] is None
    return [
        f"{row['density']:g} %",
        str(row["nnz"]),
        "MPI's own, dense" if row["algorithm"] == DENSE else label(row),
        "dense" if dense else f"{100 / row['ratio']:.2f} %",
        f"{row['p50'] / 1e3:.1f}",
        f"{row['speedup']:.1f}x",
        str(row["wrong"]),
    ]
