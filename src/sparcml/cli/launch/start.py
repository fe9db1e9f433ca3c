"""Start the ranks of a command on this machine, or run it on the ranks that exist."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

from sparcml.cli.launch.job import Job, Placement
from sparcml.cli.launch.launcher import Launcher, find_launcher, find_torch_launcher
from sparcml.cli.launch.rank_process import RANK_VARIABLES
from sparcml.errors import SparcmlError, how_to_install
from sparcml.launchers import MPI_SIZES, TORCH_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sparcml import Communicator


class Engine(StrEnum):
    """Engine that connects the ranks."""

    MPI = "mpi"
    TORCH = "torch"


EXIT_REPORTED = 65  # exit code of a rank whose command has reported the error itself
# Errors that the user can fix; any other error shows its traceback.
USER_ERRORS = (SparcmlError, OSError, FloatingPointError, MemoryError)


def under_launcher() -> bool:
    """Return whether a launcher started this process as one of several ranks."""
    if all(name in os.environ for name in TORCH_NAMES):
        return int(os.environ["WORLD_SIZE"]) > 1
    return any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES)


def run_on_ranks(command: str, work: Callable[[Communicator], None]) -> int:
    """Run a function on the ranks that exist, and return the exit code. Collective.

    A user's error is printed once, as one line.

    Args:
        command: Name of the command, for messages.
        work: The function.
    """
    from sparcml import world

    try:
        comm = world()
    except ValueError as error:  # an environment variable
        raise typer.BadParameter(str(error)) from None
    with comm:
        try:
            work(comm)
        except USER_ERRORS as error:
            if comm.rank == 0:
                text = " ".join(str(error).split()) or type(error).__name__
                typer.echo(f"{command}: {text}", err=True)
            return EXIT_REPORTED if comm.size > 1 else 1
    return 0


def start(
    command: str,
    ranks: int,
    target: list[str],
    *,
    engine: Engine = Engine.MPI,
    bandwidth: int | None = None,
) -> int:
    """Run a script or `-m module` on `ranks` ranks, and return the exit code.

    Args:
        command: Name of the command, for messages.
        ranks: Number of ranks.
        target: Script or `-m module`, with its arguments.
        engine: Engine that connects the ranks.
        bandwidth: Bits per second of each emulated link; None: no emulated network.

    Raises:
        OSError: If a program or a right is missing.
    """
    try:
        launcher = _launcher(engine, bandwidth)
        with ExitStack() as stack:
            placement = Placement()
            if bandwidth is not None:
                from sparcml.cli.launch.emulate import EmulatedCluster

                cluster = stack.enter_context(EmulatedCluster(ranks, bandwidth))
                placement = Placement(
                    cluster.prefix(RANK_VARIABLES),
                    cluster.settings,
                    cluster.has_user_namespace,
                )
            elif engine is Engine.TORCH:
                placement = Placement(settings=stack.enter_context(rendezvous(ranks)))
            job = stack.enter_context(Job(launcher, ranks, target, placement))
            code = job.wait()
    except BrokenPipeError:  # who read the output has left, as `head` does
        raise
    except OSError as error:
        raise OSError(f"{command}: {error}") from error
    if code == EXIT_REPORTED and target[:2] == ["-m", "sparcml"]:
        return 1
    if job.failure:
        typer.echo(f"{command}: {job.failure}", err=True)
    return code


def start_self(
    command: str,
    ranks: int,
    arguments: list[str],
    *,
    engine: Engine = Engine.MPI,
    bandwidth: int | None = None,
) -> int:
    """Run this command again as the ranks of a job; see `start`."""
    try:
        _check_installed(engine)
    except OSError as error:
        raise OSError(f"{command}: {error}") from None
    target = ["-m", "sparcml", *command.split()[1:], *arguments]
    return start(command, ranks, target, engine=engine, bandwidth=bandwidth)


def mpi_obstacle() -> str:
    """Return why ranks cannot be started with MPI here; empty if they can."""
    try:
        _check_installed(Engine.MPI)
        _launcher(Engine.MPI, None)
    except OSError as error:
        return str(error)
    return ""


def emulation_obstacle(ranks: int, bandwidth: int) -> str:
    """Return why links of this bandwidth cannot be emulated here; empty if they can."""
    from sparcml.cli.launch.emulate import EmulatedCluster

    try:
        _launcher(Engine.MPI, bandwidth)
        with EmulatedCluster(ranks, bandwidth):
            return ""
    except OSError as error:
        return str(error)


def _check_installed(engine: Engine) -> None:
    package, extra = {
        Engine.MPI: ("mpi4py", "mpich"),
        Engine.TORCH: ("torch", "torch"),
    }[engine]
    if find_spec(package) is None:
        raise OSError(
            f"{package} is not installed; install it with: {how_to_install(extra)}"
        )


def _launcher(engine: Engine, bandwidth: int | None) -> Launcher:
    if engine is Engine.TORCH:
        return find_torch_launcher()
    launcher = find_launcher()
    if launcher is None:
        raise OSError(
            "no mpiexec in the folder of this Python or on PATH; "
            f"install one with: {how_to_install('mpich')}"
        )
    if launcher.is_open_mpi and bandwidth is not None:
        raise OSError(
            "Open MPI does not support ranks in network namespaces; use --engine torch, "
            f"or MPICH: {how_to_install('mpich')}"
        )
    return launcher


@contextmanager
def rendezvous(ranks: int) -> Iterator[dict[str, str]]:
    """Reserve a port where ranks of torch on this machine connect.

    The port stays bound without a listener while they run: no other process gets it, and
    rank 0 can listen there, because both sides allow the address to be reused.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(held.getsockname()[1]),
            "LOCAL_WORLD_SIZE": str(ranks),
        }
