"""A command's work on all ranks of its job, and one line if it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

import sparcml
from sparcml.cli.launch.start import TOLD
from sparcml.errors import SparcmlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml import Communicator

# What is the user's to mend; anything else is ours, and shows where it happened.
TO_MEND = (SparcmlError, OSError, FloatingPointError, MemoryError)


def on_ranks(command: str, work: Callable[[Communicator], None]) -> int:
    """Do it with the ranks that are there; give the code to exit with."""
    try:
        comm = sparcml.world()
    except ValueError as error:  # a setting
        raise typer.BadParameter(str(error)) from None
    with comm:
        try:
            work(comm)
        except TO_MEND as error:
            if comm.rank == 0:
                said = " ".join(str(error).split()) or type(error).__name__
                typer.echo(f"{command}: {said}", err=True)
            return TOLD if comm.size > 1 else 1
    return 0
