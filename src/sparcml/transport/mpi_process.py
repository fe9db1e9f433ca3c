"""This process as an MPI rank: the opening of communicators, and the end."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from mpi4py import MPI

from ..errors import TransportError
from .base import EMPTY
from .shutdown import GRACE_SECONDS, ShutdownHandler
from .timeouts import SILENT_SECONDS, start_error

if TYPE_CHECKING:
    from .mpi import MpiTransport

# Between two polls a rank yields at first, then sleeps for an eighth of the time waited so
# far: no wait lasts longer by more than that.
SPIN_SECONDS, SLEEP_FRACTION, MAX_SLEEP = 20e-6, 1 / 8, 2e-3

PRESENCE_SECONDS = 1.0  # to find which ranks wait in an opening that has timed out


def idle(waited: float) -> None:
    """Yield the processor between two polls."""
    if waited < SPIN_SECONDS:
        os.sched_yield()
    else:
        time.sleep(min(MAX_SLEEP, waited * SLEEP_FRACTION))


def duplicate(comm: MPI.Comm, timeout: float) -> MPI.Comm:
    """Duplicate an MPI communicator, with a timeout. Collective."""
    try:
        copy, request = comm.Idup()
    except MPI.Exception as error:
        raise TransportError(
            f"rank {comm.Get_rank()}: MPI cannot open another communicator ({error}); "
            f"close communicators that are no longer needed"
        ) from None
    start = time.monotonic()
    while not request.Test():
        waited = time.monotonic() - start
        if waited > timeout or comm.Iprobe(tag=_present_tag(comm)):
            name = f"rank {comm.Get_rank()}"
            raise start_error(name, _absent(comm), comm.Get_size(), timeout)
        idle(waited)
    return copy


def _present_tag(comm: MPI.Comm) -> int:
    return int(comm.Get_attr(MPI.TAG_UB) or 0)


def _absent(comm: MPI.Comm) -> list[int]:
    """Return the ranks that do not wait in the same opening, after it has timed out.

    The ranks that do tell each other on the caller's communicator: there is no other yet.
    """
    tag, present = _present_tag(comm), {comm.Get_rank()}
    for peer in set(range(comm.Get_size())) - present:
        comm.Isend(EMPTY, peer, tag).Free()
    status, start = MPI.Status(), time.monotonic()
    while (waited := time.monotonic() - start) < PRESENCE_SECONDS:
        while comm.Iprobe(tag=tag, status=status):
            comm.Recv(np.empty(0, np.uint8), status.Get_source(), tag)
            present.add(status.Get_source())
        idle(waited)
    return sorted(set(range(comm.Get_size())) - present)


def _abort() -> None:
    """End all ranks of the job.

    Hydra, the launcher of MPICH, does so when a rank exits with an error. After MPI_Abort it
    would leave a file in /tmp.
    """
    if "HYDI_CONTROL_FD" in os.environ:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(1)
    MPI.COMM_WORLD.Abort(1)


class MpiShutdown(ShutdownHandler):
    """Shutdown before MPI_Finalize, which waits for all ranks, spinning and without timeout.

    This process waits for the other ranks first, and aborts the job if they do not end
    after an error. Their control messages must be received: MPI reports those that are not.
    """

    def __init__(self) -> None:
        super().__init__()
        os.register_at_fork(after_in_child=self._after_fork)
        self._fork_status: Any = None
        self.closed: list[MpiTransport] = []  # which some peer has not closed yet

    def free_closed(self) -> None:
        """Free the transports that all ranks have closed."""
        for transport in list(self.closed):
            if transport.control.all_peers_left():
                self.closed.remove(transport)
                transport.free()

    def _after_fork(self) -> None:
        """Record the exit status of a forked child, for `on_exit`."""
        original = sys.exit

        def exit_with(status: Any = None, /) -> NoReturn:
            self._fork_status = status
            original(status)

        sys.exit = exit_with

    def _exit_fork(self) -> NoReturn:
        """End a forked child before mpi4py calls MPI_Finalize, which only its parent may."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        status = self._fork_status if self.error is None else 1
        os._exit(status & 0xFF if isinstance(status, int) else int(status is not None))

    def on_exit(self) -> None:
        if self.is_forked:
            self._exit_fork()
        if MPI.Is_finalized() or MPI.COMM_WORLD.Get_size() == 1:
            return
        sys.stderr.flush()
        self.notify_peers()
        failed = self.error is not None
        # A rank that has caught a communicator's error ends normally.
        caught = any(t.control.failure is not None for t in self.transports)
        patience = max((t.timeouts.silent for t in self.transports), default=SILENT_SECONDS)
        start = time.monotonic()
        # A rank that failed without an open transport cannot see the state of the others.
        while failed or self.transports or self.closed:
            self.free_closed()
            if self.transports and self.all_peers_left() and not self.closed:
                return
            waited = time.monotonic() - start
            if failed and waited > GRACE_SECONDS:
                _abort()
            if not failed and waited > patience:
                if caught:  # MPI_Finalize would wait for the other ranks forever
                    _abort()
                return
            idle(waited)
