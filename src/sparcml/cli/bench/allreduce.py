"""`sparcml bench allreduce`: time, bytes and correctness of every algorithm."""

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

import sparcml
from sparcml.cli.bench.common import check_json, environment, parse_sizes
from sparcml.cli.bench.report import Progress, Report
from sparcml.cli.bench.sums import BASELINE, EVERY, Trial
from sparcml.cli.bench.vectors import Problem
from sparcml.cli.start import start_self, under_launcher

COMMAND = "sparcml bench allreduce"
DTYPES = ("float32", "float64")


def allreduce(
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="Ranks to start.")] = 4,
    sizes: Annotated[
        str, typer.Option(help="Numbers of values: FIRST:LAST (times 4), or a list.")
    ] = "64K:16M",
    density: Annotated[
        str, typer.Option(help="Parts of the blocks that each rank stores.")
    ] = "0.001,0.01,0.1",
    algorithms: Annotated[
        str, typer.Option(help=f"all, or some of: {', '.join(EVERY)}.")
    ] = "all",
    dtype: Annotated[str, typer.Option(help=" or ".join(DTYPES) + ".")] = "float32",
    block: Annotated[int, typer.Option(help="Values in a block.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the random vectors.")] = 1,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows there, too.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
) -> None:
    """Time each algorithm beside MPI's own dense allreduce, and check every sum.

    Starts its ranks itself; under mpiexec it uses those that are there.
    """
    names, problems = _names(algorithms), _problems(sizes, density, dtype, block, seed)
    check_json(json)
    options = f"--sizes {sizes} --density {density} --algorithms {algorithms} "
    options += f"--dtype {dtype} --block {block}"
    if under_launcher():
        raise typer.Exit(_run(names, problems, options, json, progress))
    if ranks < 2:
        raise typer.BadParameter(f"ranks must be at least 2, got {ranks}")
    arguments = [*options.split(), "--seed", str(seed)]
    arguments += ["--json", str(json)] if json else []
    arguments += ["--progress"] if sys.stderr.isatty() else []
    raise typer.Exit(start_self(COMMAND, ranks, arguments))


def _run(
    names: list[str],
    problems: list[Problem],
    options: str,
    json: Path | None,
    progress: bool,
) -> int:
    """On each rank; the first one reports."""
    with sparcml.world() as comm:
        report = Report(comm)
        doing = Progress(progress and comm.rank == 0)
        facts = environment(
            f"--ranks {comm.size} {options}", problems[0].seed, mpi=_mpi_library()
        )
        report.start(facts)
        for problem in problems:
            doing.show("making vectors")
            trial = Trial(comm, problem)
            for name in names:
                doing.show(name)
                report.add(trial.measure(name))
        report.end(facts, json)
        return report.code


def _mpi_library() -> str:
    from mpi4py import MPI

    first = MPI.Get_library_version().partition("\n")[0]
    return " ".join(str(first).rstrip("\0").split())


def _names(text: str) -> list[str]:
    names = list(EVERY) if text == "all" else text.split(",")
    for name in names:
        if name not in EVERY:
            raise typer.BadParameter(
                f"algorithms must be all or some of {', '.join(EVERY)}, got {name!r}"
            )
    # Nothing is fast or slow but against it.
    return [BASELINE, *(name for name in names if name != BASELINE)]


def _problems(sizes: str, density: str, dtype: str, block: int, seed: int) -> list[Problem]:
    if dtype not in DTYPES:
        raise typer.BadParameter(f"dtype must be {' or '.join(DTYPES)}, got {dtype!r}")
    counts = parse_sizes(sizes)
    if block < 1 or math.gcd(*counts, block) != block:
        raise typer.BadParameter(f"block must divide the sizes {sizes}, got {block}")
    return [
        Problem(size, part, dtype, block, seed)
        for size in counts
        for part in map(_density, density.split(","))
    ]


def _density(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise typer.BadParameter(f"density must be in (0, 1], got {text!r}")
    return value
