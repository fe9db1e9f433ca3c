"""Start ranks of this machine for a command, and word what stands in the way."""

import os
from importlib.util import find_spec

import typer

from sparcml.cli.job import Job
from sparcml.cli.launcher import find_launcher
from sparcml.ranks import MPI_SIZES


def under_launcher() -> bool:
    """Whether an MPI launcher has started this process as one of several."""
    return any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES)


def start(command: str, ranks: int, target: list[str]) -> int:
    """Run a script or `-m module` on so many ranks; give the code to exit with."""
    launcher = find_launcher()
    if launcher is None:
        raise OSError(
            f"{command}: no mpiexec beside this Python or on PATH; "
            "install one with: pip install sparcml[mpich]"
        )
    with Job(launcher, ranks, target) as job:
        code = job.wait()
    if job.verdict:
        typer.echo(f"{command}: {job.verdict}", err=True)
    return code


def start_self(command: str, ranks: int, arguments: list[str]) -> int:
    """Run this same command again, as ranks of an MPI job."""
    if find_spec("mpi4py") is None:
        raise OSError(
            f"{command}: mpi4py is missing; install it with: pip install sparcml[mpich]"
        )
    words = command.split()[1:]
    return start(command, ranks, ["-m", "sparcml", *words, *arguments])
