"""`sparcml run`: start ranks, forward their output, and name the rank that failed."""

import importlib.machinery
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparcml.cli.launch.start import Engine, start


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT", help="Script, followed by its arguments."),
    ],
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="Number of ranks.")] = 1,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="Run SCRIPT as a module.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(help="Engine: MPI, or torch with gloo.")
    ] = Engine.MPI,
    network: Annotated[
        str | None,
        typer.Option(help="Bandwidth of an emulated link per rank, such as 1gbit."),
    ] = None,
) -> None:
    """Run a Python script on several ranks of this machine.

    When a rank fails, all ranks end; the first rank to fail is named and its exit code
    returned.
    """
    _check(command[0], ranks, module)
    bandwidth = None if network is None else _bandwidth(network)
    target = ["-m", *command] if module else command
    code = start("sparcml run", ranks, target, engine=engine, bandwidth=bandwidth)
    raise typer.Exit(code)


def _bandwidth(network: str) -> int:
    from sparcml.network.presets import link_bandwidth

    try:
        return link_bandwidth(network)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _check(target: str, ranks: int, module: bool) -> None:
    if ranks < 1:
        raise typer.BadParameter(f"ranks must be at least 1, got {ranks}")
    if module:
        if not _importable(target.partition(".")[0]):
            raise typer.BadParameter(f"no module named {target!r}")
    elif not (Path(target).is_file() or Path(target, "__main__.py").is_file()):
        raise typer.BadParameter(f"no script at {target!r}")


def _importable(name: str) -> bool:
    path = [str(Path.cwd()), *sys.path]
    return (
        name in sys.builtin_module_names
        or importlib.machinery.PathFinder.find_spec(name, path) is not None
    )
