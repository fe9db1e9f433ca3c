"""`sparcml demo`: a spam classifier on four ranks, with sparse and with dense allreduces."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sparcml import Communicator, launch
from sparcml.cli.console import StatusLine
from sparcml.cli.demo.spam import TOLERANCE, Run, compare_runs, difference, draw, show
from sparcml.cli.launch.start import (
    emulation_obstacle,
    mpi_obstacle,
    run_on_ranks,
    start_self,
    under_launcher,
)
from sparcml.cli.plot import can_draw, check_plot, picture
from sparcml.communicator.collective_errors import run_collectively
from sparcml.errors import SparcmlError, how_to_install
from sparcml.linear import SGD, Constant, spam
from sparcml.linear.data.bundled import Split
from sparcml.linear.solvers.learning_rate import default_learning_rate
from sparcml.network.presets import link_bandwidth

COMMAND = "sparcml demo"
RANKS = 4
NONE = "none"
ONE_MACHINE = "in the memory of one machine (plain MPI)"
THREADS = "as threads of one process"
MPI_DENSE = "MPI's own allreduce, whose bytes are computed"
THREADS_DENSE = "one addition in shared memory, whose bytes are those of a ring"
NEXT = (
    "Your own data: sparcml fit train.svm -n 4 --network 1gbit --out model",
    "In Python: python -m pydoc sparcml",
    "Every algorithm, checked and timed: sparcml bench allreduce",
)
NEXT_WITHOUT_MPI = (
    "Your own data: sparcml fit train.svm --out model",
    "In Python: python -m pydoc sparcml",
    f"On processes and emulated links: {how_to_install('mpich')}, then sparcml demo",
)


def demo(
    network: Annotated[
        str, typer.Option(help="Bandwidth of emulated links, or none for plain MPI.")
    ] = "1gbit",
    sparse_epochs: Annotated[
        int, typer.Option(help="Number of epochs with sparse allreduces.")
    ] = 10,
    dense_epochs: Annotated[
        int, typer.Option(help="Number of epochs with dense allreduces.")
    ] = 2,
    batch_size: Annotated[
        int, typer.Option(help="E-mails per step, over all ranks.")
    ] = 300,
    out: Annotated[Path, typer.Option(help="File of the picture.")] = Path(
        "sparcml-demo.png"
    ),
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
) -> None:
    """Train a spam classifier on 4 ranks with sparse and dense allreduces, and compare.

    The ranks run on an emulated cluster if the system permits, on plain MPI otherwise, and
    as threads without MPI.
    """
    epochs = {"sparse": sparse_epochs, "dense": dense_epochs}
    counts = {"sparse-epochs": sparse_epochs, "dense-epochs": dense_epochs}
    bandwidth = _check(network, counts | {"batch-size": batch_size}, out)
    # The default of `fit` for rows of norm 1.
    rate = Constant(default_learning_rate("logistic", mean_squared_norm=1.0))
    solver = SGD("logistic", learning_rate=rate, batch_size=batch_size, momentum=0.9)
    if under_launcher():
        place = ONE_MACHINE
        if bandwidth is not None:
            place = f"behind emulated links of {network} each"
        status = StatusLine(progress)

        def work(comm: Communicator) -> None:
            compare(comm, spam(comm), solver, epochs, place, MPI_DENSE, out, status)

        raise typer.Exit(run_on_ranks(COMMAND, work))
    if reason := mpi_obstacle():
        typer.echo(f"No MPI here, using threads without emulated links: {reason}\n")
        _on_threads(solver, epochs, out)
        code, further = 0, NEXT_WITHOUT_MPI
    else:
        if sys.stdout.isatty():
            os.environ.setdefault("FORCE_COLOR", "1")  # the ranks write to a pipe
        if bandwidth and (reason := emulation_obstacle(RANKS, bandwidth)):
            typer.echo(f"No emulated network here, using plain MPI: {reason}\n")
            network, bandwidth = NONE, None
        arguments = ["--network", network, "--out", str(out)]
        arguments += ["--sparse-epochs", str(sparse_epochs)]
        arguments += ["--dense-epochs", str(dense_epochs), "--batch-size", str(batch_size)]
        arguments += ["--progress"] * sys.stderr.isatty()
        code = start_self(COMMAND, RANKS, arguments, bandwidth=bandwidth)
        further = NEXT
    if code == 0:
        typer.echo("\n" + "\n".join(further))
    raise typer.Exit(code)


def _on_threads(solver: SGD, epochs: dict[str, int], out: Path) -> None:
    status = StatusLine(sys.stderr.isatty())
    spam()  # decoded once for all threads

    def work(comm: Communicator) -> None:
        compare(comm, spam(comm), solver, epochs, THREADS, THREADS_DENSE, out, status)

    launch(work, RANKS)


def _check(network: str, counts: dict[str, int], out: Path) -> int | None:
    """Check the options and return the bandwidth of the links, or None without them."""
    for name, count in counts.items():
        if count < 1:
            raise typer.BadParameter(f"{name} must be at least 1, got {count}")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"no folder at {str(out.parent)!r}")
    try:
        check_plot(out if can_draw() else None)
        return None if network == NONE else link_bandwidth(network)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def compare(
    comm: Communicator,
    data: Split,
    solver: SGD,
    epochs: dict[str, int],
    place: str,
    dense: str,
    out: Path,
    status: StatusLine,
) -> None:
    """Train with both types of allreduce and report on rank 0. Collective."""
    first = comm.rank == 0
    if first:
        typer.echo(
            f"{comm.size} ranks train a spam classifier on {data.train.total:,} e-mails "
            f"of {data.train.features:,} features,\n{place}; "
            f"the validation set has {data.validation.total} e-mails.\n"
        )
    runs = compare_runs(
        comm, data, solver, epochs, status.show if first else lambda _: None
    )
    if first:
        show(runs, dense)
    check_equal(runs)
    if first:
        typer.echo(
            f"\nAfter epoch {min(epochs.values())} the weights of both runs agree to "
            f"{difference(runs):.0e} of the largest,\nand all ranks have the same bits."
        )
    drawing = partial(picture, out, partial(draw, out, runs, place))
    run_collectively(comm, drawing if first else lambda: None)


def check_equal(runs: list[Run]) -> None:
    """Raise unless all ranks and both types of allreduce have the same weights."""
    for run in runs:
        if not run.same:
            raise SparcmlError(
                f"ranks have different weights with {run.communication} allreduces"
            )
    if not difference(runs) <= TOLERANCE:
        raise SparcmlError(
            f"the weights of sparse and dense allreduces differ by {difference(runs):.1e} "
            f"of the largest, more than {TOLERANCE:.0e}"
        )
