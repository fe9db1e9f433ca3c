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

from .. import memory
from ..errors import TransportError
from .base import EMPTY, Message, Pending, Transport
from .farewell import MOMENT, Farewell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A longer message travels in pieces of this many bytes; one that is an exact multiple
# ends with an empty piece. MPI counts are 32 bits wide in most libraries.
PIECE = 1 << 30

# Between two polls, let others run at first, then sleep an eighth of the time waited so
# far: nobody oversleeps by more. A yield that took long shows that others had work.
SPIN, SHARE, LONGEST_NAP = 20e-6, 1 / 8, 1e-3

OPS = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX, "prod": MPI.PROD}


class _Sending(Pending):
    def __init__(self, transport: MpiTransport, peer: int, message: Message) -> None:
        super().__init__(transport, peer, f"send to rank {transport.labels[peer]}")
        self._message = message  # keeps the buffer alive
        pieces = len(message) // PIECE + 1
        self._requests = [
            transport.comm.Isend(message[i * PIECE : (i + 1) * PIECE], peer)
            for i in range(pieces)
        ]

    def poll(self) -> bool:
        while self._requests and _done(self._requests[0]):
            del self._requests[0]
        return not self._requests

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: MpiTransport

    def __init__(self, transport: MpiTransport, peer: int) -> None:
        super().__init__(transport, peer, f"receive from rank {transport.labels[peer]}")
        self._pieces: list[Message] = []
        self._request: MPI.Request | None = None

    def begin(self) -> bool:
        """Give it a place to arrive at: from then on MPI needs no further word."""
        if self._request is not None or self._is_complete():
            return True
        status = MPI.Status()
        found = self.transport.comm.Improbe(self.peer, status=status)
        if found is None:
            return False
        piece = memory.empty(status.Get_count(MPI.BYTE), np.uint8)
        self._pieces.append(piece)
        self._request = found.Irecv(piece)
        return True

    def _is_complete(self) -> bool:
        return bool(self._pieces) and len(self._pieces[-1]) < PIECE

    def poll(self) -> bool:
        while not (self._request is None and self._is_complete()):
            self.begin()
            if self._request is None or not _done(self._request):
                return False
            self._request = None
        return True

    def result(self) -> Message:
        if len(self._pieces) == 1:
            return self._pieces[0]
        return memory.concatenate(self._pieces)


class MpiTransport(Transport):
    """One process's end of an MPI communicator."""

    engine = "mpi"

    def __init__(self, comm: MPI.Comm, timeout: float) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size(), timeout)
        farewell = _MpiFarewell.of_this_process()  # first: opening may fail already
        self.comm = _duplicate(comm, timeout)
        self._notes = _duplicate(comm, timeout)
        self._telling: list[tuple[MPI.Request, bytes]] = []
        farewell.transports.add(self)

    @property
    def allows_threads(self) -> bool:
        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)

    def isend(self, peer: int, message: Message) -> Pending:
        return _Sending(self, peer, message)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer)

    def tell(self, peer: int, note: bytes) -> None:
        self._telling = [entry for entry in self._telling if not entry[0].Test()]
        request = self._notes.Isend([note, MPI.BYTE], peer)
        self._telling.append((request, note))

    def heard(self) -> Sequence[tuple[int, bytes]]:
        notes = []
        status = MPI.Status()
        while self._notes.Iprobe(status=status):
            note = bytearray(status.Get_count(MPI.BYTE))
            sender = status.Get_source()
            self._notes.Recv([note, MPI.BYTE], sender)
            notes.append((sender, bytes(note)))
        return notes

    def idle(self, waited: float) -> None:
        _idle(waited)

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        flat = array.reshape(-1)
        out = memory.empty(array.size, array.dtype)
        step = PIECE // array.itemsize
        for start in range(0, array.size, step):
            part = slice(start, start + step)
            request = self.comm.Iallreduce(flat[part], out[part], OPS[op])
            # Nobody in particular is waited for; the next rank stands for all.
            peer = (self.rank + 1) % self.size
            self.wait_for(request.Test, peer, "native allreduce")
        return out.reshape(array.shape)

    def duplicate(self) -> MpiTransport:
        copy = MpiTransport(self.comm, self.timeout)
        copy.labels = self.labels
        return self.adopt(copy)

    def split(self, members: Sequence[int]) -> MpiTransport:
        group = self.comm.Split(members[0], list(members).index(self.rank))
        try:
            part = MpiTransport(group, self.timeout)
        finally:
            group.Free()
        part.labels = [self.labels[member] for member in members]
        return self.adopt(part)

    def release(self) -> None:
        if MPI.Is_finalized():
            return
        if self.control.failure is not None:
            return  # still to be seen off at the end: the others may not know yet
        _MpiFarewell.of_this_process().transports.discard(self)
        self.comm.Free()
        self._notes.Free()


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


class _MpiFarewell(Farewell):
    """MPI_Finalize waits for all ranks, spinning and without an end.

    So the others are waited for before, and after an error the job is aborted if they do
    not come. Their farewells must be read: MPI complains of messages that are not.
    """

    def on_exit(self) -> None:
        if MPI.Is_finalized() or MPI.COMM_WORLD.Get_size() == 1:
            return
        sys.stderr.flush()
        self.tell_the_others()
        failed = self.error is not None
        start = time.monotonic()
        # A rank that failed with nothing open cannot know how the others are doing.
        while failed or self.transports:
            if self.transports and self.alone():
                return
            waited = time.monotonic() - start
            if failed and waited > MOMENT:
                MPI.COMM_WORLD.Abort(1)
            if not failed and waited > max(t.timeout for t in self.transports):
                return
            _idle(waited)
