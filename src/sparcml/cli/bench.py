"""`sparcml bench allreduce`: time, bytes and correctness of every algorithm."""

import math
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

import sparcml
from sparcml import Communicator
from sparcml.bench.baselines import BASELINES, available, close
from sparcml.bench.results import Column, Row, header, label, line, write_json
from sparcml.bench.trial import (
    SECONDS,
    Trial,
    all_algorithms,
    own_algorithms,
    supports_quantization,
)
from sparcml.bench.vectors import BenchCase
from sparcml.cli.console import StatusLine, check_folder
from sparcml.cli.launch.start import start_self, under_launcher
from sparcml.environment import describe
from sparcml.quantize import Quantizer
from sparcml.quantize.base import QUANTIZERS
from sparcml.units import parse_bandwidth, parse_size

COMMAND = "sparcml bench allreduce"
DTYPES = ("float32", "float64")
COLUMNS = (
    Column("label", "algorithm", "", 27),
    Column("size", "size", "(B)", 9, "d"),
    Column("density", "density", "(%)", 7, ".3g"),
    Column("nnz", "nnz", "", 8, "d"),
    Column("wire", "wire", "(B)", 9, "d"),
    Column("ratio", "ratio", "", 6, ".1f"),
    Column("p25", "p25", "(us)", 8, ".0f"),
    Column("p50", "p50", "(us)", 8, ".0f"),
    Column("p75", "p75", "(us)", 8, ".0f"),
    Column("p99", "p99", "(us)", 8, ".0f"),
    Column("algbw", "algbw", "(GB/s)", 7, ".3f"),
    Column("busbw", "busbw", "(GB/s)", 7, ".3f"),
    Column("of_bound", "% of", "link", 4, ".0f"),
    Column("of_lower", "% of", "lower bound", 11, ".0f"),
    Column("speedup", "vs dense", "", 8, ".2f"),
    Column("wrong", "#wrong", "", 6, "d"),
)


def quantizer_names() -> str:
    """Return the specifications of `--quantize`."""
    quantizers = [q for q in QUANTIZERS.values() if q.selectable]
    names = [f"{q.name}:{q.option}" if q.option else q.name for q in quantizers]
    return ", ".join(("none", *names))


bench = typer.Typer(
    help="Measure collectives and check their results.", no_args_is_help=True
)


@bench.callback()
def _bench() -> None:
    """Measure collectives and check their results."""


@bench.command()
def allreduce(
    ranks: Annotated[
        int, typer.Option("--ranks", "-n", help="Number of ranks to start.")
    ] = 4,
    sizes: Annotated[
        str, typer.Option(help="Sizes in values: FIRST:LAST by factors of 4, or a list.")
    ] = "64K:16M",
    density: Annotated[
        str, typer.Option(help="Densities: fractions of nonzero blocks per rank.")
    ] = "0.001,0.01,0.1",
    algorithms: Annotated[
        str, typer.Option(help=f"all, or names from {', '.join(all_algorithms())}.")
    ] = "all",
    quantize: Annotated[
        str, typer.Option(help=f"Quantizers, separated by commas: {quantizer_names()}.")
    ] = "none",
    dtype: Annotated[
        str, typer.Option(help="Type of the values: " + " or ".join(DTYPES) + ".")
    ] = "float32",
    block: Annotated[int, typer.Option(help="Values per block.")] = 1,
    seed: Annotated[int, typer.Option(help="Random seed of the vectors.")] = 1,
    runs: Annotated[int, typer.Option(help="Minimum number of timed runs per row.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the minimum number of runs.")
    ] = False,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="BANDWIDTH",
            help="Link bandwidth, such as 1gbit; adds the lower bound.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON file for the rows.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
) -> None:
    """Time each algorithm and the dense allreduces of MPI and gloo, and check every sum.

    Starts the ranks itself. Under mpiexec or torchrun, the existing ranks are used; under
    torchrun the baseline is gloo alone.
    """
    pairs = _pairs(algorithms, quantize)
    cases = _cases(sizes, density, dtype, block, seed)
    check_folder(json)
    options = f"--sizes {sizes} --density {density} --algorithms {algorithms} "
    options += f"--quantize {quantize} --dtype {dtype} --block {block} --runs {runs}"
    options += f" --link {link}" if link else ""
    options += " --quick" * quick
    bandwidth = None if link is None else _bandwidth(link)
    if under_launcher():
        plan = BenchPlan(pairs, cases, max(1, runs), 0.0 if quick else SECONDS, bandwidth)
        raise typer.Exit(_run(plan, options, json, progress))
    if ranks < 2:
        raise typer.BadParameter(f"ranks must be at least 2, got {ranks}")
    arguments = [*options.split(), "--seed", str(seed)]
    arguments += ["--json", str(json)] if json else []
    arguments += ["--progress"] if sys.stderr.isatty() else []
    raise typer.Exit(start_self(COMMAND, ranks, arguments))


@dataclass(frozen=True)
class BenchPlan:
    """The rows to measure: algorithms and quantizers on every case."""

    pairs: list[tuple[str, Quantizer | None]]
    cases: list[BenchCase]
    runs: int
    seconds: float
    link: float | None


class Report:
    """The table, printed row by row on rank 0."""

    def __init__(self, comm: Communicator) -> None:
        self._prints = comm.rank == 0
        self.rows: list[Row] = []

    @property
    def exit_code(self) -> int:
        """1 if a row is wrong; the same on every rank."""
        return int(any(row["wrong"] for row in self.rows))

    def start(self, facts: dict[str, str]) -> None:
        """Print the environment and the head of the table."""
        for name, value in facts.items():
            self._print(f"# {name}: {value}")
        for text in header(COLUMNS):
            self._print(text)

    def add(self, row: Row) -> None:
        """Print a row."""
        self.rows.append(row)
        self._print(line(COLUMNS, row | {"label": label(row)}))

    def end(self, facts: dict[str, str], path: Path | None) -> None:
        """Print the verdict and write the file."""
        wrong = sum(bool(row["wrong"]) for row in self.rows)
        if wrong:
            self._print(f"# FAILED: wrong sums in {wrong} of {len(self.rows)} rows")
        else:
            self._print(f"# passed: the sums of all {len(self.rows)} rows are correct")
        if self._prints and path is not None:
            write_json(path, facts, self.rows)

    def _print(self, text: str) -> None:
        if self._prints:
            typer.echo(text)


def _run(plan: BenchPlan, options: str, json: Path | None, progress: bool) -> int:
    """Measure all rows and return the exit code. Collective."""
    with sparcml.world() as comm:
        report = Report(comm)
        status = StatusLine(progress and comm.rank == 0)
        seed = plan.cases[0].seed
        facts = describe(f"--ranks {comm.size} {options}", seed, **_baseline_versions())
        report.start(facts)
        for case in plan.cases:
            status.show("generating vectors")
            trial = Trial(comm, case, plan.runs, plan.link)
            for name, quantizer in plan.pairs:
                status.show(name)
                report.add(trial.measure(name, quantizer, plan.seconds))
        report.end(facts, json)
        close()
        return report.exit_code


def _baseline_versions() -> dict[str, str]:
    versions = {}
    if "mpi_allreduce" in available():
        from mpi4py import MPI

        first = MPI.Get_library_version().partition("\n")[0]
        versions["mpi"] = " ".join(str(first).rstrip("\0").split())
    if "gloo_allreduce" in available():
        versions["torch"] = version("torch")
    return versions


def _pairs(algorithms: str, codings: str) -> list[tuple[str, Quantizer | None]]:
    """Return algorithms and quantizers to time, the baselines first."""
    installed = [*available(), *own_algorithms()]
    names = installed if algorithms == "all" else algorithms.split(",")
    for name in names:
        if name not in all_algorithms():
            raise typer.BadParameter(
                f"algorithms must be all or names from {', '.join(all_algorithms())}, "
                f"got {name!r}"
            )
        if name not in installed:
            raise typer.BadParameter(
                f"algorithms must be some of {', '.join(installed)} here, got {name!r}; "
                f"mpi_allreduce requires mpi4py and mpiexec, gloo_allreduce requires torch"
            )
    baselines = [name for name in BASELINES if name in {*names, *installed[:1]}]
    pairs: list[tuple[str, Quantizer | None]] = [(name, None) for name in baselines]
    own = [name for name in names if name not in BASELINES]
    for coding in codings.split(","):
        quantizer = _quantizer(coding)
        usable = [n for n in own if quantizer is None or supports_quantization(n)]
        pairs += [(name, quantizer) for name in usable]
    return pairs


def _quantizer(text: str) -> Quantizer | None:
    name, _, option = text.partition(":")
    if name == "none":
        return None
    try:
        return QUANTIZERS[name].from_option(option)
    except (KeyError, TypeError, ValueError):
        raise typer.BadParameter(
            f"quantize must be some of {quantizer_names()}, got {text!r}"
        ) from None


def _bandwidth(text: str) -> float:
    """Parse a link's bandwidth in bits and return bytes per second."""
    try:
        return parse_bandwidth(text) / 8
    except ValueError:
        raise typer.BadParameter(
            f"link must be a bandwidth such as 1gbit or 100mbit, got {text!r}"
        ) from None


def _cases(sizes: str, density: str, dtype: str, block: int, seed: int) -> list[BenchCase]:
    if dtype not in DTYPES:
        raise typer.BadParameter(f"dtype must be {' or '.join(DTYPES)}, got {dtype!r}")
    counts = parse_sizes(sizes)
    if block < 1 or math.gcd(*counts, block) != block:
        raise typer.BadParameter(f"block must divide the sizes {sizes}, got {block}")
    return [
        BenchCase(size, fraction, dtype, block, seed)
        for size in counts
        for fraction in map(_density, density.split(","))
    ]


def parse_sizes(text: str) -> list[int]:
    """Parse sizes separated by commas; FIRST:LAST increases by factors of 4."""
    sizes = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        try:
            size = parse_size(first)
            end = parse_size(last) if last else size
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        if end < size:
            raise typer.BadParameter(f"sizes must increase, got {part!r}")
        while size <= end:
            sizes.append(size)
            size *= 4
    return sizes


def _density(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise typer.BadParameter(f"density must be in (0, 1], got {text!r}")
    return value
