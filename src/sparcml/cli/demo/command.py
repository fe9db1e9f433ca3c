"""`sparcml demo`: real mails on four ranks, sparse against dense communication.

With torch there is a second scene: an LSTM by DDP, its gradients dense and compressed.
"""

import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sparcml import Communicator
from sparcml.cli.console import StatusLine
from sparcml.cli.demo.race import CLOSE, Run, difference, race
from sparcml.cli.demo.race_report import draw, show
from sparcml.cli.launch.start import (
    Engine,
    emulation_obstacle,
    run_on_ranks,
    start_self,
    under_launcher,
)
from sparcml.cli.plot import can_draw, check_plot, picture
from sparcml.communicator.collective_errors import run_collectively
from sparcml.errors import SparcmlError
from sparcml.linear import SGD, Constant, spam
from sparcml.linear.data.bundled import Split
from sparcml.linear.solvers.learning_rate import default_learning_rate
from sparcml.network.presets import link_bandwidth

COMMAND = "sparcml demo"
RANKS = 4
NONE = "none"
NOWHERE = "in one machine's memory (plain MPI)"
LSTM_NETWORK = "100mbit"  # where a small LSTM fares as a wide one does at 1gbit
NEXT = (
    "Your own data: sparcml fit train.svm -n 4 --network 1gbit --out model",
    "What happens in a sum, step by step: docs/tour.md",
    "Every algorithm, checked and timed: sparcml bench allreduce",
)


def demo(
    network: Annotated[
        str, typer.Option(help="Emulate links of this rate, or none: plain MPI.")
    ] = "1gbit",
    sparse: Annotated[int, typer.Option(help="Passes with sparse sums.")] = 10,
    dense: Annotated[int, typer.Option(help="Passes with dense sums.")] = 2,
    batch: Annotated[int, typer.Option(help="Mails of a step, over all ranks.")] = 300,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path(
        "sparcml-demo.png"
    ),
    progress: Annotated[bool, typer.Option("--progress", hidden=True)] = False,
    lstm: Annotated[bool, typer.Option("--lstm", hidden=True)] = False,
) -> None:
    """Learn to tell spam on 4 ranks, with sparse and with dense sums, and compare.

    With PyTorch, also train an LSTM with dense and with compressed gradients. On an emulated
    cluster where the system allows that, and on plain MPI otherwise.
    """
    passes = {"sparse": sparse, "dense": dense}
    rate = _check(network, passes | {"batch": batch}, out)
    if under_launcher():
        # The rule of `fit`, for rows of length 1; see docs/linear.md for others.
        steps = Constant(default_learning_rate("logistic", mean_squared_norm=1.0))
        solver = SGD("logistic", learning_rate=steps, batch_size=batch, momentum=0.9)
        place = "on one machine" if lstm else NOWHERE
        if rate is not None:
            place = f"behind emulated links of {network} each"
        doing = StatusLine(progress)

        def work(comm: Communicator) -> None:
            if lstm:
                from sparcml.cli.demo.lstm_scene import compare as compare_lstm

                compare_lstm(comm, place, out, doing)
                return
            compare(comm, spam(comm), solver, passes, place, out, doing)

        raise typer.Exit(run_on_ranks(COMMAND, work))
    if sys.stdout.isatty():
        os.environ.setdefault("FORCE_COLOR", "1")  # the ranks write to a pipe
    if rate is not None and (reason := emulation_obstacle(COMMAND, RANKS, rate)):
        typer.echo(f"No emulated network here, but plain MPI: {reason}\n")
        network, rate = NONE, None
    arguments = ["--network", network, "--sparse", str(sparse), "--dense", str(dense)]
    arguments += ["--batch", str(batch), "--out", str(out)]
    arguments += ["--progress"] * sys.stderr.isatty()
    code = start_self(COMMAND, RANKS, arguments, bandwidth=rate)
    if code == 0 and find_spec("torch") is not None:
        code = _second_scene(rate, out)
    if code == 0:
        typer.echo("\n" + "\n".join(NEXT))
    raise typer.Exit(code)


def _second_scene(rate: int | None, out: Path) -> int:
    """The LSTM, behind slower links if there are any; the code to exit with."""
    network = NONE if rate is None else LSTM_NETWORK
    beside = out.with_stem(f"{out.stem}-lstm")
    arguments = ["--lstm", "--network", network, "--out", str(beside)]
    arguments += ["--progress"] * sys.stderr.isatty()
    links = None if rate is None else link_bandwidth(network)
    return start_self(COMMAND, RANKS, arguments, engine=Engine.TORCH, bandwidth=links)


def _check(network: str, counts: dict[str, int], out: Path) -> int | None:
    """The rate of the links; None if there are none."""
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
    passes: dict[str, int],
    place: str,
    out: Path,
    doing: StatusLine,
) -> None:
    """On each rank; the first one reports."""
    first = comm.rank == 0
    if first:
        typer.echo(
            f"{comm.size} ranks learn to tell spam from {data.train.total:,} mails of "
            f"{data.train.features:,} features,\n{place}; "
            f"{data.validation.total} other mails are the judges.\n"
        )
    runs = race(comm, data, solver, passes, doing.show if first else lambda _: None)
    if first:
        show(runs)
    agreed(runs)
    if first:
        typer.echo(
            f"\nAfter pass {min(passes.values())} both have the same weights, to "
            f"{difference(runs):.0e} of the largest,\nand all ranks have the same bits."
        )
    drawing = partial(picture, out, partial(draw, out, runs, place))
    run_collectively(comm, drawing if first else lambda: None)


def agreed(runs: list[Run]) -> None:
    """Raise unless all ranks and both kinds of sums have led to the same weights."""
    for run in runs:
        if not run.same:
            raise SparcmlError(f"ranks have different weights, by {run.communication} sums")
    if not difference(runs) <= CLOSE:
        raise SparcmlError(
            f"sparse and dense sums lead to weights that differ by {difference(runs):.1e} of "
            f"the largest, more than {CLOSE:.0e}"
        )
