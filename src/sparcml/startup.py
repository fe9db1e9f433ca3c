"""Creation of communicators: from a launcher, MPI, torch.distributed, or as threads."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from .communicator.communicator import Communicator
from .communicator.rank_runner import run_on_threads
from .costs import ONE_MACHINE, Network, in_shared_memory
from .errors import TransportError, how_to_install
from .launchers import MPI_SIZES, TORCH_NAMES
from .network.store import lookup
from .transport import ThreadGroup, ThreadTransport
from .transport.bootstrap import this_machine
from .transport.nodes import find_nodes
from .transport.processes import find_processes
from .transport.timeouts import START_SECONDS, resolve_timeouts
from .validation import as_integer, check_callable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .network.store import Measurement
    from .transport import Transport

T = TypeVar("T")


def world(*, timeout: float | None = None) -> Communicator:
    """Return the communicator of all ranks of this job. Collective.

    Under torchrun the ranks are its processes, whether or not torch.distributed has been
    initialized. Under mpiexec, or srun with an MPI, they are the MPI processes. A program
    that was started without a launcher is a world of one rank.

    The network model is the one that SPARCML_NETWORK names on rank 0, else the one that
    `sparcml probe` has measured between these machines, else a default.

    Args:
        timeout: Seconds that a rank waits for another, busy or not. Default: for a rank that
            is dead or stopped SPARCML_TIMEOUT, or 30; for a busy one the engine's limit.
    """
    if _is_torch_job():
        if find_spec("torch") is None:
            raise TransportError(
                "world: started by torchrun, but torch is missing; install it with: "
                f"{how_to_install('torch')}"
            )
        return from_group(timeout=timeout)
    if any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES):
        if find_spec("mpi4py") is None:
            raise TransportError(
                "world: started by an MPI launcher, but mpi4py is missing; install it "
                f"with: {how_to_install('mpi')}"
            )
        from mpi4py import MPI

        return from_mpi(MPI.COMM_WORLD, timeout=timeout)
    return _open(ThreadTransport(ThreadGroup(1), 0, resolve_timeouts(timeout)))


def _is_torch_job() -> bool:
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return True
    return "TORCHELASTIC_RUN_ID" in os.environ or all(n in os.environ for n in TORCH_NAMES)


def from_mpi(comm: Any, *, timeout: float | None = None) -> Communicator:
    """Return a communicator of the ranks of an mpi4py communicator. Collective.

    Messages are sent on a duplicate, separate from those of the caller.
    """
    from mpi4py import MPI

    from .transport.mpi import MpiTransport

    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise TypeError(f"from_mpi: comm must be an mpi4py intracommunicator, got {comm!r}")
    return _open(MpiTransport(comm, resolve_timeouts(timeout)))


def from_group(process_group: Any = None, *, timeout: float | None = None) -> Communicator:
    """Return a communicator of the ranks of a process group. Collective.

    Messages are sent on a separate gloo group, whatever the backend of the given group.
    Tensors of other devices are copied to the host.

    Args:
        process_group: A torch.distributed process group; None is the default group.
        timeout: Seconds that a rank waits for another, busy or not. Default: for a rank that
            is dead or stopped SPARCML_TIMEOUT, or 30; for a busy one the engine's limit.
    """
    from .transport.gloo.rendezvous import open_transport

    return _open(open_transport(process_group, timeout))


def from_store(
    store: Any, rank: int, size: int, *, timeout: float | None = None
) -> Communicator:
    """Return a communicator of processes that meet in a store. Collective.

    They need no process group: several communicators with different members may follow each other,
    each with a store of its own, such as a PrefixStore.

    Args:
        store: A torch.distributed store, the same on all of them.
        rank: Rank of this process among them.
        size: Number of processes.
        timeout: Seconds that a rank waits for another, busy or not. Default: as in `from_group`.
    """
    from .transport.gloo.transport import TorchTransport

    # A member may have died before it opened its end.
    limit = START_SECONDS if timeout is None else timeout
    timeouts = resolve_timeouts(timeout, start_limit=limit)
    return _open(TorchTransport(store, rank, size, timeouts))


def _open(transport: Transport) -> Communicator:
    """Return a communicator with the network model that rank 0 has looked up."""
    transport.nodes = find_nodes(transport, this_machine().encode())
    transport.processes = find_processes(transport)
    shared, default = transport.processes.per_processor, ONE_MACHINE
    if len(transport.nodes.leaders) > 1:
        default = Network().with_shared_processors(shared)
    elif transport.engine == "mpi":
        default = in_shared_memory(shared)
    try:
        network = lookup(transport, default)
    except ValueError:  # on all ranks
        transport.close()
        raise
    return _start_trace(Communicator(transport, network, measure=_probe))


def _probe(transport: Transport) -> Measurement:
    """Measure the network; the modules for it are imported when a program asks."""
    from .network.probe import probe

    return probe(transport)


def _start_trace(comm: Communicator) -> Communicator:
    """Trace all communicators of a program to the file SPARCML_TRACE, if it is set."""
    if path := os.environ.get("SPARCML_TRACE"):
        comm.trace(path, add=True)
    return comm


def launch(
    fn: Callable[[Communicator], T], ranks: int, *, timeout: float | None = None
) -> list[T]:
    """Run fn(comm) on `ranks` ranks, which are threads of this process.

    Args:
        fn: The program of each rank.
        ranks: Number of ranks.
        timeout: Seconds that a rank waits for another, busy or not. Default: for a rank that
            is dead or stopped SPARCML_TIMEOUT, or 30; for a busy one the engine's limit.

    Returns:
        The return values, by rank.

    Raises:
        BaseException: The exception of the first rank that raised; the others end with it.
    """
    check_callable("launch", fn)
    ranks = as_integer("launch", "ranks", ranks, minimum=1)

    def open_communicator(transport: Transport) -> Communicator:
        return Communicator(transport, ONE_MACHINE, measure=_probe)

    return run_on_threads(
        lambda comm: fn(_start_trace(comm)),
        ranks,
        open_communicator,
        resolve_timeouts(timeout),
    )
