"""Ranks as MPI processes, through mpi4py.

Messages are sent on a duplicate of the user's communicator and control messages on a
second one, apart from all messages of the user. All waits poll: MPI's own waits spin,
take the processor from ranks that compute, and have no timeout.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .. import buffer_pool
from ..errors import TransportError, WireError
from ..operations import OPS
from . import shared_memory
from .base import EMPTY, Message, Pending, Transport
from .control import CLOSED
from .mpi_functions import MPI_OPS, MpiFunctions, mpi_functions
from .mpi_process import MpiShutdown, duplicate, idle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .timeouts import Timeouts

# A longer message is sent in segments, after a message with its length and theirs. Of
# two large messages between two ranks, MPICH over TCP sends one after the other; segments
# in both directions overlap, which is twice as fast.
SEGMENT_BYTES = (1 << 20) + 4096  # one segment holds a megabyte of values and a header
WHOLE, LENGTH, SEGMENT = range(3)  # tags

LOST_SECONDS = 1.0  # to find which rank is gone after an error of MPI
PART_BYTES = 1 << 20  # of an allreduce of MPI, as in the compiled loop
PAIR_BYTES = 1 << 24  # of a vector that two ranks exchange, as in the compiled loop


class _Sending(Pending):
    transport: MpiTransport

    def __init__(self, transport: MpiTransport, peer: int, message: Message) -> None:
        super().__init__(transport, peer, f"send to rank {transport.global_ranks[peer]}")
        self._message = message  # keeps the buffer alive
        try:
            self._start(transport.comm, message)
        except MPI.Exception as error:
            raise transport.lost(error, peer, self.action) from None

    def _start(self, comm: MPI.Comm, message: Message) -> None:
        if len(message) <= SEGMENT_BYTES:
            self._requests = [comm.Isend(message, self.peer, WHOLE)]
            return
        self._length = np.array([len(message), SEGMENT_BYTES], np.int64)
        self._requests = [comm.Isend(self._length, self.peer, LENGTH)]
        for segment in _segments(message, SEGMENT_BYTES):
            self._requests.append(comm.Isend(segment, self.peer, SEGMENT))

    def poll(self) -> bool:
        try:
            while self._requests and _test(self._requests[0]):
                del self._requests[0]
        except MPI.Exception as error:
            raise self.transport.lost(error, self.peer, self.action) from None
        return not self._requests

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: MpiTransport

    def __init__(self, transport: MpiTransport, peer: int) -> None:
        source = transport.global_ranks[peer]
        super().__init__(transport, peer, f"receive from rank {source}")
        self._message: Message | None = None
        self._requests: list[MPI.Request] = []

    def begin(self) -> bool:
        """Post the receive; MPI then makes progress in any call."""
        if self._message is not None:
            return True
        try:
            return self._start(self.transport.comm)
        except MPI.Exception as error:
            raise self.transport.lost(error, self.peer, self.action) from None

    def _start(self, comm: MPI.Comm) -> bool:
        status = MPI.Status()
        probed = comm.Improbe(self.peer, MPI.ANY_TAG, status)
        if probed is None:
            return False
        if status.Get_tag() == WHOLE:
            self._message = buffer_pool.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._requests = [probed.Irecv(self._message)]
            return True
        length = np.zeros(2, np.int64)
        count = status.Get_count(MPI.BYTE)
        probed.Recv(length if count == length.nbytes else bytearray(count))
        if length[0] <= 0 or not 0 < length[1] <= SEGMENT_BYTES:
            raise WireError(
                f"rank {self.transport.rank} received a malformed message from rank {self.peer}: "
                f"{count} bytes as lengths of segments; use one version of sparcml on all ranks"
            )
        # Of a message that is too long, the header in the first segment tells what is wrong.
        is_too_long = length[0] > self.transport.longest_message
        nbytes = min(length) if is_too_long else length[0]
        self._message = buffer_pool.empty(int(nbytes), np.uint8)
        segments = _segments(self._message, int(length[1]))
        self._requests = [comm.Irecv(s, self.peer, SEGMENT) for s in segments]
        return True

    def poll(self) -> bool:
        if not self.begin():
            return False
        try:
            while self._requests and _test(self._requests[0]):
                del self._requests[0]
        except MPI.Exception as error:
            raise self.transport.lost(error, self.peer, self.action) from None
        return not self._requests

    def result(self) -> Message:
        assert self._message is not None
        return self._message


def _segments(message: Message, nbytes: int) -> list[Message]:
    return [message[start : start + nbytes] for start in range(0, len(message), nbytes)]


class MpiTransport(Transport):
    """One process's end of an MPI communicator."""

    engine = "mpi"
    native_algorithm = "mpich" if MPI.get_vendor()[0] == "MPICH" else "ring"
    segment_bytes = in_turn_bytes = SEGMENT_BYTES

    def __init__(self, comm: MPI.Comm, timeouts: Timeouts) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size(), timeouts)
        shutdown = MpiShutdown.instance()  # first: the duplication may fail
        if MPI.Is_initialized():  # all ranks of the node have mapped it
            shared_memory.unlink(shared_memory.segments())
        shutdown.free_closed()
        self.comm = duplicate(comm, timeouts.start)
        self._control_comm = duplicate(comm, timeouts.start)
        self._control_sends: list[tuple[MPI.Request, bytes]] = []
        self._is_lost = False
        shutdown.transports.add(self)

    @property
    def allows_threads(self) -> bool:
        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)

    def isend(self, peer: int, message: Message) -> Pending:
        return _Sending(self, peer, message)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer)

    def send_control(self, peer: int, message: bytes) -> None:
        with suppress(MPI.Exception):  # the peer is gone
            sends = self._control_sends
            self._control_sends = [send for send in sends if not send[0].Test()]
            request = self._control_comm.Isend([message, MPI.BYTE], peer)
            self._control_sends.append((request, message))

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        messages: list[tuple[int, bytes]] = []
        try:
            self._read_control(messages)
        except MPI.Exception as error:
            # MPI reports the failure of any message in any call.
            if self.control.waiting and self.control.failure is None and not self._is_lost:
                raise self.lost(error) from None
        return messages

    def _read_control(self, messages: list[tuple[int, bytes]]) -> None:
        status = MPI.Status()
        while self._control_comm.Iprobe(status=status):
            message = bytearray(status.Get_count(MPI.BYTE))
            sender = status.Get_source()
            self._control_comm.Recv([message, MPI.BYTE], sender)
            messages.append((sender, bytes(message)))

    def functions(self) -> MpiFunctions | None:
        """Return the functions of MPI for the compiled message loop, if they are found."""
        return mpi_functions(self.comm, self._control_comm)

    def lost_by_code(self, code: int, peer: int, action: str) -> TransportError:
        """Return the error of an MPI function that has returned an error code."""
        return self.lost(MPI.Exception(code), peer, action)

    def lost(
        self, error: MPI.Exception, peer: int | None = None, action: str = ""
    ) -> TransportError:
        """Return the error of a failed MPI call, or raise the one that a rank reports.

        Args:
            error: MPI's error.
            peer: Rank at the other end; None: the one that this rank waits for.
            action: Description of what failed.
        """
        self._is_lost = True
        if peer is not None:
            self.control.begin_wait(peer, action)
        deadline = self.now() + LOST_SECONDS
        while not (dead := self.processes.lost()) and self.now() < deadline:
            self.control.check()
            time.sleep(LOST_SECONDS / 50)
        detail = str(error).strip().splitlines()[-1]
        return self.control.lose(
            dead, "is gone" if dead else f"cannot be reached ({detail})"
        )

    def idle(self, waited: float) -> None:
        idle(waited)

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        flat = array.reshape(-1)
        out = buffer_pool.empty(array.size, array.dtype)
        if self.size == 2 and array.nbytes <= PAIR_BYTES:
            self._reduce_pair(flat, op, out)
            return out.reshape(array.shape)
        count = PART_BYTES // array.itemsize
        for start in range(0, array.size, count):
            part = slice(start, start + count)
            # It waits for all ranks; error messages name the next one.
            peer = (self.rank + 1) % self.size
            try:
                request = self.comm.Iallreduce(flat[part], out[part], MPI_OPS[op])
                self.wait_for(request.Test, peer, "native allreduce")
            except MPI.Exception as error:
                raise self.lost(error, peer, "native allreduce") from None
        return out.reshape(array.shape)

    def _reduce_pair(self, x: NDArray[Any], op: str, out: NDArray[Any]) -> None:
        """Exchange vectors with the other of two ranks, which is faster than MPI's allreduce."""
        peer = 1 - self.rank
        sending = self.isend(peer, x.view(np.uint8))
        other = self.irecv(peer).wait().view(x.dtype)
        if other.size != x.size:
            raise TransportError(
                f"native allreduce: rank {self.global_ranks[peer]} must send {x.size} values, got "
                f"{other.size}"
            )
        first, second = (x, other) if peer else (other, x)
        with np.errstate(all="ignore"):  # as in MPI
            OPS[op].ufunc(first, second, out=out)
        sending.wait()

    def duplicate(self) -> MpiTransport:
        copy = MpiTransport(self.comm, self.timeouts)
        return self.add_sibling(copy, range(self.size))

    def split(self, members: Sequence[int]) -> MpiTransport:
        try:
            group = self.comm.Split(members[0], list(members).index(self.rank))
        except MPI.Exception as error:
            raise self.lost(error, (self.rank + 1) % self.size, "split") from None
        try:
            child = MpiTransport(group, self.timeouts)
        finally:
            group.Free()
        return self.add_sibling(child, members)

    def decline_split(self) -> None:
        super().decline_split()
        self.comm.Split(MPI.UNDEFINED)

    def release(self) -> None:
        if MPI.Is_finalized():
            return
        if self.control.failure is not None:
            return  # needed at exit: other ranks may not know of the failure yet
        # Freed once all peers have closed it too: MPI may give its number to a new
        # communicator, which must not receive messages of this one.
        self.control.leave(CLOSED)
        shutdown = MpiShutdown.instance()
        shutdown.transports.discard(self)
        shutdown.closed.append(self)
        shutdown.free_closed()

    def free(self) -> None:
        """Free the communicators of MPI."""
        self.comm.Free()
        self._control_comm.Free()


def _test(request: MPI.Request) -> bool:
    """Test a request several times.

    Each test sends a bounded part of a message, so that a single one would leave the link
    idle.
    """
    test = request.Test
    return test() or test() or test() or test()
