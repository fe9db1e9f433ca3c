"""`sparcml fit`: train a linear model on LIBSVM files, on one or many ranks."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, Field, fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sparcml import Communicator
from sparcml.cli.console import check_inputs, check_output, input_files
from sparcml.cli.fit_progress import FitProgress
from sparcml.cli.fit_report import show
from sparcml.cli.launch.start import Engine, run_on_ranks, start_self, under_launcher
from sparcml.cli.plot import check_plot, draw
from sparcml.communicator.collective_errors import allgather_numbers, run_collectively
from sparcml.errors import DataError
from sparcml.files import copy_pipe, is_pipe
from sparcml.linear.training.config import TrainingConfig
from sparcml.linear.training.loop import train
from sparcml.network.presets import link_bandwidth

COMMAND = "sparcml fit"


def _with_config(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `config` of a command by one option per field of the config."""
    names = [f.name for f in fields(TrainingConfig)]

    def wrapped(**options: Any) -> None:
        config = TrainingConfig(**{name: options.pop(name) for name in names})
        command(config, **options)

    hints = get_type_hints(TrainingConfig)
    of_config = [_parameter(f, hints[f.name]) for f in fields(TrainingConfig)]
    _, *others = (
        p.replace(kind=Parameter.KEYWORD_ONLY)
        for p in signature(command).parameters.values()
    )
    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    parameters = [*of_config, *others]
    wrapped.__signature__ = signature(command).replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _parameter(field: Field[Any], hint: Any) -> Parameter:
    about = field.metadata
    texts = {"help": about["help"], "metavar": about.get("metavar")}
    if about.get("argument"):
        info = typer.Argument(**texts)
    else:
        info = typer.Option(*filter(None, [about.get("flag")]), **texts)
    return Parameter(
        field.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if field.default is MISSING else field.default,
        annotation=Annotated[hint, info],
    )


@_with_config
def fit(
    config: TrainingConfig,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-n", help="Number of ranks to start. Default: 1."),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="Link bandwidth per rank to emulate, such as 1gbit."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Engine that connects the ranks.")
    ] = Engine.MPI,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot of loss, time and bytes to write."),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            help="Progress bar. Default: if standard error is a terminal; otherwise one line "
            "per epoch."
        ),
    ] = None,
    started: Annotated[bool, typer.Option("--started", hidden=True)] = False,
) -> None:
    """Train a linear model on LIBSVM files, on one or many ranks.

    The command starts its ranks itself; under mpiexec or torchrun it uses those of the
    launcher.
    """
    config = replace(config, files=input_files(config.files))
    with_launcher = started or under_launcher()
    known = ranks if with_launcher or ranks is not None else 1
    bandwidth = _check(config, plot, network, known)
    if started or under_launcher():
        if network is not None and not started:
            raise typer.BadParameter(
                "network must be left out under a launcher, which has chosen the network"
            )
        raise typer.Exit(run_on_ranks(COMMAND, _work(config, plot, ranks, progress)))
    ranks = 1 if ranks is None else ranks
    if ranks < 1:
        raise typer.BadParameter(f"ranks must be at least 1, got {ranks}")
    if ranks == 1:
        if network is not None:
            raise typer.BadParameter("network needs several ranks; add -n")
        raise typer.Exit(run_on_ranks(COMMAND, _work(config, plot, ranks, progress)))
    with _without_pipes(config.files) as files:
        arguments = ["--started", f"--ranks={ranks}", *_terminal_options(progress)]
        arguments += [] if plot is None else [f"--plot={plot}"]
        arguments += config_words(replace(config, files=files))
        code = start_self(COMMAND, ranks, arguments, engine=engine, bandwidth=bandwidth)
    raise typer.Exit(code)


def config_words(config: TrainingConfig) -> list[str]:
    """Return the command line of a config: options that are not the default, then files."""
    options: list[str] = []
    arguments: list[str] = []
    for field in fields(TrainingConfig):
        value, flag = getattr(config, field.name), field.metadata.get("flag")
        name = field.name.replace("_", "-")
        if field.metadata.get("argument"):
            arguments += map(str, value)
        elif value == field.default:
            continue
        elif isinstance(value, bool):
            names = (flag or f"--{name}/--no-{name}").split("/")
            options.append(names[0] if value else names[1])
        else:
            options.append(f"--{name}={value}")
    return [*options, "--", *arguments]  # a file may be named like an option


@contextmanager
def _without_pipes(paths: list[Path]) -> Iterator[list[Path]]:
    """Copy pipes to temporary files, which all ranks can read; return all paths."""
    with ExitStack() as stack:
        found = []
        for path in paths:
            # The ranks have a standard input of their own, even if ours is a file.
            if is_pipe(path) or str(path) == "/dev/stdin":
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="sparcml-"))
                copy_pipe(path, file)
                found.append(Path(file.name))
            else:
                found.append(path)
        yield found


def _check(
    config: TrainingConfig, plot: Path | None, network: str | None, ranks: int | None
) -> int | None:
    """Check all options before ranks start; return the link bandwidth to emulate."""
    try:
        config.check(ranks if ranks is None or ranks >= 1 else None)
        check_plot(plot)
        bandwidth = None if network is None else link_bandwidth(network)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise OSError(f"{COMMAND}: {error}") from None
    inputs = [*config.files, *([config.weights] if config.weights else [])]
    check_inputs(inputs)
    check_output("--out", config.out, inputs)
    if plot is not None:
        check_output("--plot", plot, inputs)
    if config.checkpoint is not None and config.checkpoint.is_file():
        raise typer.BadParameter(
            f"--checkpoint must be a folder, got the file {str(config.checkpoint)!r}"
        )
    return bandwidth


def _terminal_options(progress: bool | None) -> list[str]:
    """Describe the terminal to ranks, whose output is a pipe."""
    if sys.stdout.isatty():
        os.environ.setdefault("FORCE_COLOR", "1")
    if progress is None and sys.stderr.isatty():
        progress = True
    if progress:
        os.environ.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    return [] if progress is None else [f"--{'' if progress else 'no-'}progress"]


def _work(
    config: TrainingConfig, plot: Path | None, ranks: int | None, progress: bool | None
) -> Callable[[Communicator], None]:
    def work(comm: Communicator) -> None:
        if ranks not in (None, comm.size):
            raise DataError(f"-n {ranks}, but the launcher has started {comm.size}")
        wanted = sys.stderr.isatty() if progress is None else progress
        shown = bool(allgather_numbers(comm, wanted)[0, 0])
        lines = progress is None and not shown
        observer = FitProgress(shown, comm.rank == 0, config.communication, lines=lines)
        result = train(comm, config, observer)
        if comm.rank == 0:
            show(comm, config, result)
        if plot is not None:
            plots = comm.rank == 0
            arguments = (plot, result.history, config.loss, comm.size)
            run_collectively(comm, lambda: draw(*arguments) if plots else None)

    return work
