"""`sparcml run`: start ranks, pass their output on, and name the one that died."""

import importlib.machinery
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparcml.cli.start import start


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
) -> None:
    """Run a Python script on several ranks of this machine.

    All ranks end when one fails; the first to fail is named, and its code passed on.
    """
    _check(command[0], ranks, module)
    target = ["-m", *command] if module else command
    raise typer.Exit(start("sparcml run", ranks, target))


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
