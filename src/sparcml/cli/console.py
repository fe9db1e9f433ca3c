"""Terminal output that several commands share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path


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
