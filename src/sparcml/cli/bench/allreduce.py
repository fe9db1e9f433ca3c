"""`sparcml bench allreduce`: time, bytes and correctness of every algorithm."""

import math
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

import sparcml
from sparcml.cli.bench.baselines import PEERS, available, close
from sparcml.cli.bench.common import check_json, environment, parse_sizes
from sparcml.cli.bench.table import Progress, Report
from sparcml.cli.bench.trial import EVERY, OURS, SECONDS, Trial, quantizes
from sparcml.cli.bench.vectors import Problem
from sparcml.cli.launch.start import start_self, under_launcher
from sparcml.quantize import QSGD, Half, Quantizer

COMMAND = "sparcml bench allreduce"
DTYPES = ("float32", "float64")
CODINGS = {"none": None, "qsgd8": QSGD(8), "half": Half()}


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
    quantize: Annotated[
        str, typer.Option(help=f"Codings of values: some of {', '.join(CODINGS)}.")
    ] = "none",
    dtype: Annotated[str, typer.Option(help=" or ".join(DTYPES) + ".")] = "float32",
    block: Annotated[int, typer.Option(help="Values in a block.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the random vectors.")] = 1,
    runs: Annotated[int, typer.Option(help="Timed runs of each, at least.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="No more runs than that, for a first look.")
    ] = False,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="What a rank can send, such as 1gbit: for a bound."
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows there, too.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
) -> None:
    """Time each algorithm beside the dense allreduces of MPI and gloo; check every sum.

    Starts its ranks itself; under mpiexec it uses those that are there.
    """
    pairs, problems = (
        _pairs(algorithms, quantize),
        _problems(sizes, density, dtype, block, seed),
    )
    check_json(json)
    options = f"--sizes {sizes} --density {density} --algorithms {algorithms} "
    options += f"--quantize {quantize} --dtype {dtype} --block {block} --runs {runs}"
    options += f" --link {link}" if link else ""
    options += " --quick" * quick
    rate = None if link is None else _rate(link)
    if under_launcher():
        plan = Plan(pairs, problems, max(1, runs), 0.0 if quick else SECONDS, rate)
        raise typer.Exit(_run(plan, options, json, progress))
    if ranks < 2:
        raise typer.BadParameter(f"ranks must be at least 2, got {ranks}")
    arguments = [*options.split(), "--seed", str(seed)]
    arguments += ["--json", str(json)] if json else []
    arguments += ["--progress"] if sys.stderr.isatty() else []
    raise typer.Exit(start_self(COMMAND, ranks, arguments))


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    pairs: list[tuple[str, Quantizer | None]]
    problems: list[Problem]
    runs: int
    seconds: float
    link: float | None


def _run(plan: Plan, options: str, json: Path | None, progress: bool) -> int:
    """On each rank; the first one reports."""
    problems = plan.problems
    with sparcml.world() as comm:
        report = Report(comm)
        doing = Progress(progress and comm.rank == 0)
        facts = environment(f"--ranks {comm.size} {options}", problems[0].seed, **_others())
        report.start(facts)
        for problem in problems:
            doing.show("making vectors")
            trial = Trial(comm, problem, plan.runs, plan.link)
            for name, quantizer in plan.pairs:
                doing.show(name)
                report.add(trial.measure(name, quantizer, plan.seconds))
        report.end(facts, json)
        close()
        return report.code


def _others() -> dict[str, str]:
    """What we are compared with."""
    from mpi4py import MPI

    first = MPI.Get_library_version().partition("\n")[0]
    found = {"mpi": " ".join(str(first).rstrip("\0").split())}
    if "gloo_allreduce" in available():
        found["torch"] = version("torch")
    return found


def _pairs(algorithms: str, codings: str) -> list[tuple[str, Quantizer | None]]:
    """What is timed, in which coding: first those that all are compared with."""
    known = [*available(), *OURS]
    names = known if algorithms == "all" else algorithms.split(",")
    for name in names:
        if name not in EVERY:
            raise typer.BadParameter(
                f"algorithms must be all or some of {', '.join(EVERY)}, got {name!r}"
            )
        if name not in known:
            raise typer.BadParameter(f"torch is not installed, which {name!r} needs")
    peers = [name for name in PEERS if name in {*names, "mpi_allreduce"}]
    pairs: list[tuple[str, Quantizer | None]] = [(name, None) for name in peers]
    for coding in codings.split(","):
        if coding not in CODINGS:
            raise typer.BadParameter(
                f"quantize must be some of {', '.join(CODINGS)}, got {coding!r}"
            )
        ours = [name for name in names if name not in PEERS]
        able = [name for name in ours if coding == "none" or quantizes(name)]
        pairs += [(name, CODINGS[coding]) for name in able]
    return pairs


def _rate(text: str) -> float:
    """Bytes a second of a link, said in bits."""
    units = {"gbit": 1e9, "mbit": 1e6, "kbit": 1e3}
    digits, unit = text[:-4], text[-4:]
    try:
        return float(digits) * units[unit] / 8
    except (ValueError, KeyError):
        raise typer.BadParameter(
            f"link must be a rate such as 1gbit or 100mbit, got {text!r}"
        ) from None


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
