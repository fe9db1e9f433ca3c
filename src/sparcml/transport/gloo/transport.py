"""Ranks as processes of torch.distributed, over gloo.

All messages use separate connections, apart from those of the user's process groups.
Messages and control messages share them, so that the last control message of a rank
arrives before the end of its connection is seen.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torch import distributed as dist

from ... import buffer_pool
from ...errors import TransportError
from ..base import EMPTY, Message, Pending, Transport
from ..control import CLOSED
from ..shutdown import ShutdownHandler
from ..timeouts import Timeouts, start_error, wait_policy
from .frames import ControlMessages, Peer
from .mesh import Mesh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .mesh import Operation


SLEEP_SECONDS = 0.02  # between two polls of the control messages
MAX_PAUSE = 0.1  # between two looks whether all ranks have come
LAST_MESSAGE_SECONDS = 0.2  # to receive the reason why a connection has closed


class _Sending(Pending):
    transport: TorchTransport

    def __init__(self, transport: TorchTransport, peer: int, message: Message) -> None:
        super().__init__(transport, peer, f"send to rank {transport.global_ranks[peer]}")
        with suppress(RuntimeError):
            self._operation = transport.peers[peer].send(message)
            return
        raise transport.lost(peer, self.action)

    def poll(self) -> bool:
        if self._operation is None:
            return True
        return self.transport.poll(self._operation, self.peer, self.action)

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: TorchTransport

    def __init__(self, transport: TorchTransport, peer: int) -> None:
        source = transport.global_ranks[peer]
        super().__init__(transport, peer, f"receive from rank {source}")
        self._message: Message | None = None
        self._body: Operation | None = None

    def poll(self) -> bool:
        try:
            if self._message is None:
                longest = self.transport.longest_message
                received = self.transport.peers[self.peer].receive(longest)
                if received is None:
                    return False
                self._message, self._body = received
            return self._body is None or self._body.poll()
        except RuntimeError:
            pass
        raise self.transport.lost(self.peer, self.action)

    def result(self) -> Message:
        assert self._message is not None
        return self._message


def meet(store: Any, rank: int, size: int, seconds: float) -> None:
    """Wait in the store for all ranks; raise an error that names those that are missing."""
    keys = [f"here:{peer}" for peer in range(size)]
    missing: list[int] = []
    start, pause = time.monotonic(), 1e-3
    with suppress(RuntimeError):  # the store has ended with rank 0
        store.set(keys[rank], "")
        while not store.check(keys):
            missing = [peer for peer in range(size) if not store.check([keys[peer]])]
            if time.monotonic() - start > seconds:
                break
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)
        else:
            return
    raise start_error(f"rank {rank}", missing, size, seconds)


class TorchTransport(Transport):
    """One process's end of a separate gloo group.

    Args:
        store: Store for the rendezvous of the ranks; its keys must be unused.
        rank: This process's rank in the group.
        size: Number of ranks.
        timeouts: Timeouts to open it, and of every wait.
    """

    engine = "torch"

    def __init__(self, store: Any, rank: int, size: int, timeouts: Timeouts) -> None:
        super().__init__(rank, size, timeouts)
        self._store = store
        self._closed = False
        self._yield_seconds = wait_policy(self).yield_
        meet(store, rank, size, timeouts.start)
        try:
            self._mesh = Mesh(store, rank, size, timeouts.start)
            others = [peer for peer in range(size) if peer != rank]
            self._control_messages = ControlMessages(self._mesh, others)
            self.peers = {peer: Peer(self._mesh, peer) for peer in others}
        except RuntimeError as error:
            raise TransportError(
                f"rank {rank}: gloo cannot connect all {size} ranks "
                f"({str(error).splitlines()[0]})"
            ) from None
        ShutdownHandler.instance().transports.add(self)

    def isend(self, peer: int, message: Message) -> Pending:
        return _Sending(self, peer, message)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer)

    def send_control(self, peer: int, message: bytes) -> None:
        if not self._closed:
            self._control_messages.send(peer, message)

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        return [] if self._closed else self._control_messages.poll()

    def idle(self, waited: float) -> None:
        if waited < self._yield_seconds:
            os.sched_yield()
        else:
            self._mesh.waiters.sleep(SLEEP_SECONDS)

    def poll(self, operation: Operation, peer: int, action: str) -> bool:
        """Return whether it is complete; raise if the connection is lost."""
        with suppress(RuntimeError):
            return operation.poll()
        raise self.lost(peer, action)

    def lost(self, peer: int, action: str) -> TransportError:
        """Return the error of a closed connection, or raise the one that its peer reports."""
        self.control.begin_wait(peer, action)
        lost = self._mesh.lost_peers() or [peer]
        deadline = self.now() + LAST_MESSAGE_SECONDS
        while self.now() < deadline:
            self.control.check()
            time.sleep(LAST_MESSAGE_SECONDS / 20)
        dead = self.processes.lost()
        lost = [rank for rank in lost if rank in dead] or lost
        left = self.control.has_left(lost[0])
        return self.control.lose(lost, "has closed its connection" if left else "is gone")

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        result = buffer_pool.copy(array.reshape(-1)).reshape(array.shape)
        if self.size > 1 and array.size:
            # It waits for all ranks; error messages name the next one.
            peer, action = (self.rank + 1) % self.size, "native allreduce"
            try:
                operation = self._mesh.allreduce(result.reshape(-1), op)
            except RuntimeError:
                raise self.lost(peer, action) from None
            self.wait_for(lambda: self.poll(operation, peer, action), peer, action)
        return result

    def duplicate(self) -> TorchTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> TorchTransport:
        name = f"{self.child_count}:{'.'.join(map(str, members))}"
        store = dist.PrefixStore(name, self._store)
        rank = list(members).index(self.rank)
        child = TorchTransport(store, rank, len(members), self.timeouts)
        return self.add_sibling(child, members)

    def release(self) -> None:
        ShutdownHandler.instance().transports.discard(self)
        if self.control.failure is None:
            self._flush()
        if self.control.failure is None:
            self.control.leave(CLOSED)
        self._closed = True
        self._mesh.close()
        self.peers.clear()  # posted receives hold gloo's threads and sockets
        del self._control_messages

    def _flush(self) -> None:
        """Wait until all frames have been sent: a peer that computes may delay them."""
        for rank, peer in self.peers.items():
            with suppress(RuntimeError, TransportError):  # the peer has ended
                self.wait_for(peer.all_sent, rank, "close")
