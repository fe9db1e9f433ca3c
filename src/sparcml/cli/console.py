"""Terminal output that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from sparcml.files import check_writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table


class StatusLine:
    """The current activity on stderr, on a line that the next output overwrites.

    Args:
        enabled: Whether to write anything.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def show(self, activity: str) -> None:
        """Replace the line."""
        if self._enabled:
            sys.stderr.write(f"  {activity} ...".ljust(40) + "\r")
            sys.stderr.flush()


def check_folder(path: Path | None) -> None:
    """Raise a usage error if the folder of an output file does not exist."""
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"no folder for {str(path)!r}")


def check_output(option: str, path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise a usage error if an output file cannot be written, or would replace an input.

    Args:
        option: Option of the output file.
        path: The output file.
        inputs: Files and folders that the command reads.
    """
    if str(path) == "-":
        raise typer.BadParameter(f"{option} must be a file, got '-'; try /dev/stdout")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"no folder at {str(path.parent)!r}")
    try:
        check_writable(path)
    except OSError as error:
        raise typer.BadParameter(
            f"{option} must be a file that can be written, got {str(path)!r}: {error.strerror}"
        ) from None
    if path.is_file() and any(_holds(given, path) for given in inputs):
        raise typer.BadParameter(
            f"{option} {str(path)!r} is also an input; choose another file"
        )


def _holds(given: Path, path: Path) -> bool:
    """Return whether a file is an input, or in a folder that is one."""
    files = given.iterdir() if given.is_dir() else [given]
    return any(file.exists() and file.samefile(path) for file in files)


def standard_input(path: Path) -> Path:
    """Return the path to read for `-`, or the path."""
    return Path("/dev/stdin") if str(path) == "-" else path


def input_files(paths: Iterable[Path]) -> list[Path]:
    """Return the paths to read; raise a usage error if standard input is there twice."""
    found = [standard_input(path) for path in paths]
    if found.count(standard_input(Path("-"))) > 1:
        raise typer.BadParameter("standard input can be read once; give - once")
    return found


def check_inputs(paths: Iterable[Path]) -> None:
    """Raise a usage error if a file or folder to read does not exist."""
    for path in paths:
        if not path.exists():
            raise typer.BadParameter(f"no file at {str(path)!r}")


def loss_text(loss: float) -> str:
    """Format a loss with six decimals, or digits if it is large."""
    return f"{loss:.6f}" if abs(loss) < 1e6 else f"{loss:.6g}"


def label_text(label: float | str) -> str:
    """Format the label of a class."""
    return label if isinstance(label, str) else f"{label:g}"


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1
) -> None:
    """Print a table.

    Args:
        heads: Head of each column.
        rows: Cells of each row.
        left: Number of columns, from the first, that are aligned to the left.
    """
    from rich.console import Console

    table = make_table(heads, left=left)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def make_table(heads: Sequence[str], *, left: int = 1) -> Table:
    """Return an empty table; see `print_table`."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if column < left else "right"
        table.add_column(head, justify=justify, no_wrap=True)
    return table
