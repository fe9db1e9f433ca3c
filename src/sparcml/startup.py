"""How a program gets its communicator: from its launcher, MPI, torch, or as threads."""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from .collectives import ONE_MACHINE, Network
from .communicator.arguments import seconds_to_wait
from .communicator.communicator import Communicator
from .errors import TransportError
from .network.known import known
from .network.probe import probe
from .transport import ThreadGroup, ThreadTransport
from .transport.bootstrap import this_machine
from .transport.control import abort_message
from .transport.nodes import find_nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from .transport import Transport

T = TypeVar("T")

# What launchers of MPI jobs tell their processes: the number of ranks.
MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS")

# What torchrun tells its processes, and scripts that do without it.
TORCH_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def world(*, timeout: float | None = None) -> Communicator:
    """The communicator of all ranks of this job.

    Under torchrun these are its processes, whether or not torch.distributed has been
    initialised; under mpiexec (or srun with an MPI) the MPI processes; a program that
    was started alone gets a world of one. All ranks call it.

    Its network is what SPARCML_NETWORK says on rank 0, else what `sparcml probe` has
    measured between these machines, else an assumption; `network` shows it.
    """
    if _torch_started_this():
        if find_spec("torch") is None:
            raise TransportError(
                "world: started by torchrun, but torch is missing; install it with: "
                "pip install sparcml[torch]"
            )
        return from_group(timeout=timeout)
    if any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES):
        if find_spec("mpi4py") is None:
            raise TransportError(
                "world: started by an MPI launcher, but mpi4py is missing; install it "
                "with: pip install sparcml[mpi]"
            )
        from mpi4py import MPI

        return from_mpi(MPI.COMM_WORLD, timeout=timeout)
    transport = ThreadTransport(ThreadGroup(1), 0, seconds_to_wait(timeout))
    return _opened(transport)


def _torch_started_this() -> bool:
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return True
    return "TORCHELASTIC_RUN_ID" in os.environ or all(n in os.environ for n in TORCH_NAMES)


def from_mpi(comm: Any, *, timeout: float | None = None) -> Communicator:
    """From an mpi4py communicator; all its ranks call it.

    Messages travel on a duplicate, apart from those of the caller.
    """
    from mpi4py import MPI

    from .transport.mpi import MpiTransport

    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise TypeError(f"from_mpi: expected an mpi4py intracommunicator, got {comm!r}")
    return _opened(MpiTransport(comm, seconds_to_wait(timeout)))


def from_group(process_group: Any = None, *, timeout: float | None = None) -> Communicator:
    """From a torch.distributed process group, or the default one; all its ranks call it.

    Messages travel on a gloo group of our own, apart from those of the caller, whatever
    the backend of the group given; tensors of other devices are copied to the host.
    """
    from .transport.gloo.rendezvous import open_transport

    return _opened(open_transport(process_group, seconds_to_wait(timeout)))


def _opened(transport: Transport) -> Communicator:
    """With the network that rank 0 knows, else the one assumed for near or far ranks."""
    transport.nodes = find_nodes(transport, this_machine().encode())
    assumed = ONE_MACHINE if len(transport.nodes.leaders) == 1 else Network()
    try:
        network = known(transport, assumed)
    except ValueError:  # on all ranks
        transport.close()
        raise
    return _traced(Communicator(transport, network, measure=probe))


def _traced(comm: Communicator) -> Communicator:
    """With SPARCML_TRACE set, all communicators of a program go to one file."""
    if path := os.environ.get("SPARCML_TRACE"):
        comm.trace(path, add=True)
    return comm


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
    limit = seconds_to_wait(timeout)
    team = ThreadGroup(ranks)
    results: list[Any] = [None] * ranks
    failures: list[tuple[int, BaseException, bool]] = []  # in the order they happened

    def body(rank: int) -> None:
        transport = ThreadTransport(team, rank, limit)
        comm = Communicator(transport, ONE_MACHINE, measure=probe)
        try:
            results[rank] = fn(_traced(comm))
        except BaseException as error:
            transport.abort(error)
            failures.append((rank, error, transport.control.is_origin))
        finally:
            transport.leave()
            comm.close()

    threads = [
        threading.Thread(target=body, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(ranks)
    ]
    for thread in threads:
        thread.start()
    try:
        _join(threads, failures, limit)
    except BaseException as error:  # Ctrl-C
        team.broadcast_control(
            abort_message(f"the job was ended by {type(error).__name__}")
        )
        _join(threads, [(0, error, True)], 0.0)
        raise
    if failures:
        # Some ranks only report what another began.
        rank, cause, _ = next((f for f in failures if f[2]), failures[0])
        cause.add_note(f"on rank {rank} of {ranks} (threads)")
        raise cause
    return results


def _join(
    threads: list[threading.Thread],
    failures: list[tuple[int, BaseException, bool]],
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
