"""Ranks as MPI processes, through mpi4py.

Messages travel on a duplicate of the user's communicator, notes on a second one, so
that nothing of ours meets a message of theirs. All waits poll: MPI would spin in its
own waits, take the processor from ranks that have work, and never look at the clock.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .. import buffer_pool
from ..errors import TransportError
from .base import EMPTY, Message, Pending, Transport
from .shutdown import GRACE_SECONDS, ShutdownHandler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A longer message travels in pieces of this many bytes, after one that tells its length.
# Of two large messages between two ranks, MPICH over TCP moves one at a time, there and
# then back; in pieces they pass each other, twice as fast.
PIECE = (1 << 20) + 4096  # a megabyte of values, with its header, is not cut
WHOLE, LENGTH, PART = range(3)  # tags

MOST_BYTES = 1 << 30  # in one call: counts of MPI are 32 bits wide in most libraries

# Between two polls, let others run at first, then sleep an eighth of the time waited so
# far: nobody oversleeps by more. A yield that took long shows that others had work.
SPIN, SHARE, LONGEST_NAP = 20e-6, 1 / 8, 2e-3

OPS = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX, "prod": MPI.PROD}


class _Sending(Pending):
    def __init__(self, transport: MpiTransport, peer: int, message: Message) -> None:
        super().__init__(transport, peer, f"send to rank {transport.global_ranks[peer]}")
        self._message = message  # keeps the buffer alive
        comm = transport.comm
        if len(message) <= PIECE:
            self._requests = [comm.Isend(message, peer, WHOLE)]
            return
        self._length = np.array([len(message)], np.int64)
        self._requests = [comm.Isend(self._length, peer, LENGTH)]
        self._requests += [comm.Isend(part, peer, PART) for part in _pieces(message)]

    def poll(self) -> bool:
        while self._requests and _done(self._requests[0]):
            del self._requests[0]
        return not self._requests

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: MpiTransport

    def __init__(self, transport: MpiTransport, peer: int) -> None:
        super().__init__(
            transport, peer, f"receive from rank {transport.global_ranks[peer]}"
        )
        self._message: Message | None = None
        self._requests: list[MPI.Request] = []

    def begin(self) -> bool:
        """Give it a place to arrive at: from then on MPI needs no further word."""
        if self._message is not None:
            return True
        status = MPI.Status()
        comm = self.transport.comm
        found = comm.Improbe(self.peer, MPI.ANY_TAG, status)
        if found is None:
            return False
        if status.Get_tag() == WHOLE:
            self._message = buffer_pool.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._requests = [found.Irecv(self._message)]
            return True
        length = np.empty(1, np.int64)
        found.Recv(length)
        self._message = buffer_pool.empty(int(length[0]), np.uint8)
        self._requests = [
            comm.Irecv(part, self.peer, PART) for part in _pieces(self._message)
        ]
        return True

    def poll(self) -> bool:
        if not self.begin():
            return False
        while self._requests and _done(self._requests[0]):
            del self._requests[0]
        return not self._requests

    def result(self) -> Message:
        assert self._message is not None
        return self._message


def _pieces(message: Message) -> list[Message]:
    return [message[start : start + PIECE] for start in range(0, len(message), PIECE)]


class MpiTransport(Transport):
    """One process's end of an MPI communicator."""

    engine = "mpi"

    def __init__(self, comm: MPI.Comm, timeout: float) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size(), timeout)
        shutdown = _MpiShutdown.instance()  # first: opening may fail already
        self.comm = _duplicate(comm, timeout)
        self._control_comm = _duplicate(comm, timeout)
        self._control_sends: list[tuple[MPI.Request, bytes]] = []
        shutdown.transports.add(self)

    @property
    def allows_threads(self) -> bool:
        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)

    def isend(self, peer: int, message: Message) -> Pending:
        return _Sending(self, peer, message)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer)

    def send_control(self, peer: int, message: bytes) -> None:
        self._control_sends = [
            entry for entry in self._control_sends if not entry[0].Test()
        ]
        request = self._control_comm.Isend([message, MPI.BYTE], peer)
        self._control_sends.append((request, message))

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        notes = []
        status = MPI.Status()
        while self._control_comm.Iprobe(status=status):
            note = bytearray(status.Get_count(MPI.BYTE))
            sender = status.Get_source()
            self._control_comm.Recv([note, MPI.BYTE], sender)
            notes.append((sender, bytes(note)))
        return notes

    def idle(self, waited: float) -> None:
        _idle(waited)

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        flat = array.reshape(-1)
        out = buffer_pool.empty(array.size, array.dtype)
        step = MOST_BYTES // array.itemsize
        for start in range(0, array.size, step):
            part = slice(start, start + step)
            request = self.comm.Iallreduce(flat[part], out[part], OPS[op])
            # Nobody in particular is waited for; the next rank stands for all.
            peer = (self.rank + 1) % self.size
            self.wait_for(request.Test, peer, "native allreduce")
        return out.reshape(array.shape)

    def duplicate(self) -> MpiTransport:
        copy = MpiTransport(self.comm, self.timeout)
        return self.add_sibling(copy, range(self.size))

    def split(self, members: Sequence[int]) -> MpiTransport:
        group = self.comm.Split(members[0], list(members).index(self.rank))
        try:
            part = MpiTransport(group, self.timeout)
        finally:
            group.Free()
        return self.add_sibling(part, members)

    def release(self) -> None:
        if MPI.Is_finalized():
            return
        if self.control.failure is not None:
            return  # still to be seen off at the end: the others may not know yet
        _MpiShutdown.instance().transports.discard(self)
        self.comm.Free()
        self._control_comm.Free()


def _done(request: MPI.Request) -> bool:
    """MPI moves a bounded piece of a message each time: asked once, the link runs dry."""
    test = request.Test
    return test() or test() or test() or test()


def _idle(waited: float) -> None:
    if waited < SPIN:
        os.sched_yield()
    else:
        time.sleep(min(LONGEST_NAP, waited * SHARE))


def _duplicate(comm: MPI.Comm, timeout: float) -> MPI.Comm:
    """MPI_Comm_dup, but with an end to the wait."""
    try:
        copy, request = comm.Idup()
    except MPI.Exception as error:
        raise TransportError(
            f"rank {comm.Get_rank()}: MPI cannot open another communicator ({error}); "
            f"close those that are no longer needed"
        ) from None
    start = time.monotonic()
    while not request.Test():
        waited = time.monotonic() - start
        if waited > timeout:
            raise TransportError(
                f"rank {comm.Get_rank()}: not all {comm.Get_size()} ranks have come to "
                f"open the communicator within {timeout:g} s"
            )
        _idle(waited)
    return copy


class _MpiShutdown(ShutdownHandler):
    """MPI_Finalize waits for all ranks, spinning and without an end.

    So the others are waited for before, and after an error the job is aborted if they do
    not come. Their farewells must be read: MPI complains of messages that are not.
    """

    def on_exit(self) -> None:
        if MPI.Is_finalized() or MPI.COMM_WORLD.Get_size() == 1:
            return
        sys.stderr.flush()
        self.notify_peers()
        failed = self.error is not None
        # A rank that has caught the error of a communicator ends as if nothing had been.
        caught = any(t.control.failure is not None for t in self.transports)
        start = time.monotonic()
        # A rank that failed with nothing open cannot know how the others are doing.
        while failed or self.transports:
            if self.transports and self.all_peers_left():
                return
            waited = time.monotonic() - start
            if failed and waited > GRACE_SECONDS:
                MPI.COMM_WORLD.Abort(1)
            if not failed and waited > max(t.timeout for t in self.transports):
                if caught:  # MPI would wait for them without an end
                    MPI.COMM_WORLD.Abort(1)
                return
            _idle(waited)
