"""`sparcml run`: start ranks, pass their output on, and name the one that died."""

import importlib.machinery
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparcml.cli.launch.start import Engine, start
from sparcml.network.rates import parse_rate


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT", help="The script, then its arguments."),
    ],
    ranks: Annotated[
        int, typer.Option("--ranks", "-n", help="How many ranks to start.")
    ] = 1,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="SCRIPT is the name of a module.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(help="Who brings the ranks together: mpiexec or gloo.")
    ] = Engine.MPI,
    network: Annotated[
        str | None,
        typer.Option(help="Emulate a link of this rate for each rank: 1gbit, 100mbit."),
    ] = None,
) -> None:
    """Run a Python script on several ranks of this machine.

    All ranks end when one fails; the first to fail is named, and its code passed on.
    """
    _check(command[0], ranks, module)
    rate = None if network is None else _rate(network)
    target = ["-m", *command] if module else command
    raise typer.Exit(start("sparcml run", ranks, target, engine=engine, rate=rate))


def _rate(network: str) -> int:
    try:
        return parse_rate(network)
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
