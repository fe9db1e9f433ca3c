"""How a program gets its communicator: from its launcher, from MPI, or as threads."""

from __future__ import annotations

import os
import threading
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from .communicator import Communicator
from .errors import TransportError
from .transport import ThreadTransport, World

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

DEFAULT_TIMEOUT = 30.0

# What launchers of MPI jobs tell their processes: the number of ranks.
MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS")


def default_timeout() -> float:
    """Seconds a rank waits for another before it gives up: SPARCML_TIMEOUT, or 30."""
    text = os.environ.get("SPARCML_TIMEOUT", "")
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise ValueError(f"SPARCML_TIMEOUT must be a number of seconds > 0, got {text!r}")
    return seconds


def world(*, timeout: float | None = None) -> Communicator:
    """The communicator of all ranks of this job.

    Under mpiexec (or srun with an MPI) these are the MPI processes; a program that was
    started alone gets a world of one. All ranks call it.
    """
    if os.environ.get("TORCHELASTIC_RUN_ID"):
        raise TransportError(
            "world: started by torchrun, which this version cannot use yet; start the "
            "program with `sparcml run -n 4 script.py` or mpiexec"
        )
    if any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES):
        if find_spec("mpi4py") is None:
            raise TransportError(
                "world: started by an MPI launcher, but mpi4py is missing; install it "
                "with: pip install sparcml[mpi]"
            )
        from mpi4py import MPI

        return from_mpi(MPI.COMM_WORLD, timeout=timeout)
    return Communicator(ThreadTransport(World(1), 0, timeout or default_timeout()))


def from_mpi(comm: Any, *, timeout: float | None = None) -> Communicator:
    """From an mpi4py communicator; all its ranks call it.

    Messages travel on a duplicate, apart from those of the caller.
    """
    from .transport.mpi import MpiTransport

    return Communicator(MpiTransport(comm, timeout or default_timeout()))


def launch(
    fn: Callable[[Communicator], T], ranks: int, *, timeout: float | None = None
) -> list[T]:
    """Run fn(comm) on `ranks` ranks, as threads of this process.

    Returns:
        What each rank returned, in the order of ranks.

    Raises:
        BaseException: What the first rank to fail has raised; the others end with it.
    """
    if ranks < 1:
        raise ValueError(f"launch: ranks must be at least 1, got {ranks}")
    limit = timeout or default_timeout()
    team = World(ranks)
    results: list[Any] = [None] * ranks
    failures: list[tuple[int, BaseException]] = []  # in the order they happened

    def body(rank: int) -> None:
        transport = ThreadTransport(team, rank, limit)
        try:
            with Communicator(transport) as comm:
                results[rank] = fn(comm)
        except BaseException as error:
            failures.append((rank, error))
        finally:
            transport.control.leave()

    threads = [
        threading.Thread(target=body, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(ranks)
    ]
    for thread in threads:
        thread.start()
    _join(threads, failures, limit)
    if failures:
        rank, error = failures[0]
        error.add_note(f"on rank {rank} of {ranks} (threads)")
        raise error
    return results


def _join(
    threads: list[threading.Thread],
    failures: list[tuple[int, BaseException]],
    limit: float,
) -> None:
    """Wait for all; once one has failed, a rank that never ends is left behind."""
    deadline = None
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.02)
        if failures and deadline is None:
            deadline = time.monotonic() + limit + 2.0
        if deadline is not None and time.monotonic() > deadline:
            return
