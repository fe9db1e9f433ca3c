"""Start ranks of this machine for a command, and word what stands in the way."""

import os
from contextlib import ExitStack
from enum import StrEnum
from importlib.util import find_spec

import typer

from sparcml.cli.launch.job import Job, Place
from sparcml.cli.launch.launcher import Launcher, find_launcher, torch_starter
from sparcml.cli.launch.meeting import meeting
from sparcml.cli.launch.rank_process import RANK_VARIABLES
from sparcml.network.emulate import Cluster
from sparcml.startup import MPI_SIZES, TORCH_NAMES


class Engine(StrEnum):
    """Who brings the ranks together."""

    MPI = "mpi"
    TORCH = "torch"


TOLD = 65  # of ranks of ours that have said themselves why they end


def under_launcher() -> bool:
    """Whether a launcher has started this process as one of several."""
    if all(name in os.environ for name in TORCH_NAMES):
        return int(os.environ["WORLD_SIZE"]) > 1
    return any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES)


def start(
    command: str,
    ranks: int,
    target: list[str],
    *,
    engine: Engine = Engine.MPI,
    rate: int | None = None,
    told: int | None = None,
) -> int:
    """Run a script or `-m module` on so many ranks; give the code to exit with.

    Args:
        command: Who speaks to the user.
        ranks: How many.
        target: What to run.
        engine: Who brings the ranks together.
        rate: Bits per second of each rank's link to an emulated network; None: no such.
        told: A code of ranks that have said why they end: nothing is added, and it is 1.

    Raises:
        OSError: If something is missing here.
    """
    try:
        launcher = _launcher(engine, rate)
        with ExitStack() as stack:
            if rate is None:
                place = Place()
                if engine is Engine.TORCH:
                    place = Place(settings=stack.enter_context(meeting(ranks)))
            else:
                cluster = stack.enter_context(Cluster(ranks, rate))
                place = Place(cluster.prefix(RANK_VARIABLES), cluster.settings)
            job = stack.enter_context(Job(launcher, ranks, target, place))
            code = job.wait()
    except OSError as error:
        raise OSError(f"{command}: {error}") from error
    if code == told:
        return 1
    if job.verdict:
        typer.echo(f"{command}: {job.verdict}", err=True)
    return code


def why_not_emulated(command: str, ranks: int, rate: int) -> str:
    """What stands in the way of links of this rate; empty if nothing does.

    Raises:
        OSError: If ranks cannot be started at all.
    """
    try:
        _launcher(Engine.MPI, None)
    except OSError as error:
        raise OSError(f"{command}: {error}") from error
    try:
        _launcher(Engine.MPI, rate)
        with Cluster(ranks, rate):
            return ""
    except OSError as error:
        return str(error)


def _launcher(engine: Engine, rate: int | None) -> Launcher:
    if engine is Engine.TORCH:
        return torch_starter()
    launcher = find_launcher()
    if launcher is None:
        raise OSError(
            "no mpiexec beside this Python or on PATH; "
            "install one with: pip install sparcml[mpich]"
        )
    if launcher.is_open_mpi and rate is not None:
        raise OSError(
            "ranks of Open MPI do not find it from namespaces of their own; use "
            "--engine torch, or MPICH: pip install sparcml[mpich]"
        )
    return launcher


def start_self(
    command: str,
    ranks: int,
    arguments: list[str],
    *,
    engine: Engine = Engine.MPI,
    rate: int | None = None,
) -> int:
    """Run this same command again, as ranks of a job; see `start`."""
    needed, extra = {
        Engine.MPI: ("mpi4py", "mpich"),
        Engine.TORCH: ("torch", "torch"),
    }[engine]
    if find_spec(needed) is None:
        raise OSError(
            f"{command}: {needed} is missing; install it with: pip install sparcml[{extra}]"
        )
    target = ["-m", "sparcml", *command.split()[1:], *arguments]
    return start(command, ranks, target, engine=engine, rate=rate, told=TOLD)
