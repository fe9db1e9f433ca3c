"""`sparcml fit`: a linear model of LIBSVM text, made by many ranks."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sparcml import Communicator
from sparcml.cli.fit_report import show
from sparcml.cli.launch.start import Engine, start_self, under_launcher
from sparcml.cli.launch.together import on_ranks
from sparcml.cli.plot import check_plot, draw
from sparcml.communicator.collective_errors import gather, together
from sparcml.errors import DataError
from sparcml.linear import LOSSES
from sparcml.linear.training.bar import Bar
from sparcml.linear.training.config import Settings
from sparcml.linear.training.loop import train
from sparcml.linear.training.methods import KNOWN
from sparcml.network.rates import parse_rate

COMMAND = "sparcml fit"


def fit(
    files: Annotated[
        list[Path],
        typer.Argument(help="LIBSVM text, plain or compressed, or folders of it."),
    ],
    out: Annotated[Path, typer.Option(help="Where the model goes.")],
    loss: Annotated[str, typer.Option(help=", ".join(LOSSES) + ".")] = "logistic",
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-n", help="Ranks to start; 1 by default.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Emulate a link of this rate for each rank: 1gbit.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Who brings the ranks together.")
    ] = Engine.MPI,
    solver: Annotated[
        str, typer.Option(help="sgd: steps by batches; scd: coordinates, to the optimum.")
    ] = "sgd",
    batch: Annotated[int, typer.Option(help="sgd: rows of a step, over all ranks.")] = 32,
    epochs: Annotated[
        int | None, typer.Option(help="Passes: 10 of sgd; at most 1000 of scd.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="sgd: of the first step; found by the rows' lengths."),
    ] = None,
    steps: Annotated[
        str, typer.Option(help="sgd: rates are constant, inverse or exponential.")
    ] = "constant",
    decay: Annotated[
        float,
        typer.Option(help="rate / (1 + decay * passes), or rate * exp(-decay * passes)."),
    ] = 1.0,
    warm_up: Annotated[float, typer.Option(help="Passes in which rates grow.")] = 0.0,
    momentum: Annotated[
        float, typer.Option(help="sgd: of the last step into the next.")
    ] = 0.0,
    block: Annotated[
        int, typer.Option(help="scd: coordinates of a rank in a round.")
    ] = 100,
    l1: Annotated[float, typer.Option(help="Penalty on the sum of magnitudes.")] = 0.0,
    l2: Annotated[float, typer.Option(help="Penalty on half the sum of squares.")] = 0.0,
    intercept: Annotated[bool, typer.Option(help="Whether there is one.")] = True,
    seed: Annotated[int, typer.Option(help="Of all that is random.")] = 0,
    communication: Annotated[
        str, typer.Option(help="sparse, or dense: the engine's own sums, to compare.")
    ] = "sparse",
    algorithm: Annotated[
        str, typer.Option(help="Of sparse sums: auto, or a name of docs/algorithms.md.")
    ] = "auto",
    compress: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help=f"Lossy, with error feedback: {KNOWN}."),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="What rows count: balanced, or LABEL:WEIGHT,..."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What each row counts, a line each.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the rows to judge by, and to stop early by.")
    ] = 0.0,
    patience: Annotated[
        int, typer.Option(help="sgd: passes without a better held-out loss.")
    ] = 3,
    tolerance: Annotated[
        float | None, typer.Option(help="How much better counts: 1e-4 of sgd, 1e-8 of scd.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(help="Columns; by default as many as are in the text.")
    ] = None,
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based", help="Where indices start; 0 if one of them is 0."
        ),
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache", help="Keep the rows in binary, for the next time.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the state there after each pass."),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="sgd: and within a pass; 0: not so."),
    ] = 0.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw loss, time and bytes.")
    ] = None,
    progress: Annotated[
        bool | None, typer.Option(help="A bar; if errors go to a terminal by default.")
    ] = None,
    started: Annotated[bool, typer.Option("--started", hidden=True)] = False,
) -> None:
    """Make a linear model of LIBSVM text on one rank or many.

    Starts its ranks itself; under mpiexec or torchrun it uses those that are there.
    """
    settings = Settings(
        files=tuple(files),
        out=out,
        loss=loss,
        solver=solver,
        batch=batch,
        epochs=epochs,
        rate=rate,
        steps=steps,
        decay=decay,
        warm_up=warm_up,
        momentum=momentum,
        block=block,
        l1=l1,
        l2=l2,
        intercept=intercept,
        seed=seed,
        communication=communication,
        algorithm=algorithm,
        compress=compress,
        class_weight=class_weight,
        weights=weights,
        held_out=held_out,
        patience=patience,
        tolerance=tolerance,
        features=features,
        zero_based=zero_based,
        cache=cache,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )
    speed = _check(settings, plot, network)
    if started or under_launcher():
        if network is not None and not started:
            raise typer.BadParameter(
                "the launcher has chosen the network: leave out network"
            )
        raise typer.Exit(on_ranks(COMMAND, _work(settings, plot, ranks, progress)))
    ranks = 1 if ranks is None else ranks
    if ranks < 1:
        raise typer.BadParameter(f"ranks must be at least 1, got {ranks}")
    if ranks == 1:
        if network is not None:
            raise typer.BadParameter("one rank has no network: give more with -n")
        raise typer.Exit(on_ranks(COMMAND, _work(settings, plot, ranks, progress)))
    arguments = [*sys.argv[2:], "--started", *_terminal(progress)]
    raise typer.Exit(start_self(COMMAND, ranks, arguments, engine=engine, rate=speed))


def _check(settings: Settings, plot: Path | None, network: str | None) -> int | None:
    """Before anything is started; the rate of the links."""
    try:
        settings.check()
        check_plot(plot)
        speed = None if network is None else parse_rate(network)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise OSError(f"{COMMAND}: {error}") from None
    for path in (*settings.files, *([settings.weights] if settings.weights else [])):
        if not path.exists():
            raise typer.BadParameter(f"no file at {str(path)!r}")
    for place in [settings.out] if plot is None else [settings.out, plot]:
        if not place.parent.is_dir():
            raise typer.BadParameter(f"no folder at {str(place.parent)!r}")
    if settings.out.is_dir():
        raise typer.BadParameter(f"{str(settings.out)!r} is a folder: name a file in it")
    return speed


def _terminal(progress: bool | None) -> list[str]:
    """What ranks, which write to a pipe, must be told about the terminal."""
    if sys.stdout.isatty():
        os.environ.setdefault("FORCE_COLOR", "1")
    if progress is None:
        progress = sys.stderr.isatty()
    if progress:
        os.environ.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    return ["--progress" if progress else "--no-progress"]


def _work(
    settings: Settings, plot: Path | None, ranks: int | None, progress: bool | None
) -> Callable[[Communicator], None]:
    def work(comm: Communicator) -> None:
        if ranks not in (None, comm.size):
            raise DataError(f"-n {ranks}, but the launcher has started {comm.size}")
        wanted = sys.stderr.isatty() if progress is None else progress
        shown = bool(gather(comm, wanted)[0, 0])
        bar = Bar(shown, comm.rank == 0, settings.communication)
        result = train(comm, settings, bar)
        if comm.rank == 0:
            show(comm, settings, result)
        if plot is not None:
            draws = comm.rank == 0
            passed = (plot, result.history, settings.loss, comm.size)
            together(comm, lambda: draw(*passed) if draws else None)

    return work
