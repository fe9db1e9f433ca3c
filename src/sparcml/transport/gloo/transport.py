"""Ranks as processes of torch.distributed, over gloo.

Messages and notes travel on connections of our own, so that nothing of ours meets a
message of the user's. Both take the same ones: what a rank says before it leaves thus
arrives before the end of its connection is seen. One frame from each peer is always
awaited, so that a short message takes one trip.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import distributed as dist

from ... import buffer_pool
from ...errors import TransportError
from ..base import EMPTY, Message, Pending, Transport
from ..shutdown import ShutdownHandler
from .frames import ROOM, START, ControlMessages, Peer, length
from .mesh import Mesh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .operations import Operation

GLANCE = 50e-6  # seconds of looking at what is awaited before going to sleep
NAP = 0.02  # seconds between two looks at the notes, in a long wait
LAST_WORDS = 0.2  # seconds to hear why a connection has closed


class _Sending(Pending):
    transport: TorchTransport

    def __init__(self, transport: TorchTransport, peer: int, message: Message) -> None:
        super().__init__(transport, peer, f"send to rank {transport.global_ranks[peer]}")
        with suppress(RuntimeError):
            self._operation = transport.peers[peer].send(message)
            return
        raise transport.lost(peer, self.action)

    def poll(self) -> bool:
        return self._operation is None or self.transport.done(
            self._operation, self.peer, self.action
        )

    def result(self) -> Message:
        return EMPTY


class _Receiving(Pending):
    transport: TorchTransport

    def __init__(self, transport: TorchTransport, peer: int) -> None:
        super().__init__(
            transport, peer, f"receive from rank {transport.global_ranks[peer]}"
        )
        self._message: Message | None = None
        self._body: Operation | None = None

    def poll(self) -> bool:
        with suppress(RuntimeError):
            if self._message is None:
                self._begin()
            return self._message is not None and (self._body is None or self._body.done())
        raise self.transport.lost(self.peer, self.action)

    def _begin(self) -> None:
        peer = self.transport.peers[self.peer]
        frame = peer.next_frame()
        if frame is None:
            return
        size = length(frame)
        if size <= ROOM:
            self._message = frame[START : START + size]
        else:
            self._message = buffer_pool.empty(size, np.uint8)
            self._body = peer.body(frame, self._message)

    def result(self) -> Message:
        assert self._message is not None
        return self._message


class TorchTransport(Transport):
    """One process's end of a gloo group of our own.

    Args:
        store: Where the ranks meet; nobody else may use its keys.
        rank: This process's number in the group.
        size: Number of ranks.
        timeout: Seconds, for opening it and for every wait.
    """

    engine = "torch"

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        super().__init__(rank, size, timeout)
        self._store = store
        self._children = 0
        self._closed = False
        try:
            self._mesh = Mesh(store, rank, size, timeout)
        except RuntimeError as error:
            raise TransportError(
                f"rank {rank}: not all {size} ranks have come to open the communicator "
                f"within {timeout:g} s ({str(error).splitlines()[0]})"
            ) from None
        others = [peer for peer in range(size) if peer != rank]
        self._control_messages = ControlMessages(self._mesh, others)
        self.peers = {peer: Peer(self._mesh, peer) for peer in others}
        ShutdownHandler.instance().transports.add(self)

    def isend(self, peer: int, message: Message) -> Pending:
        return _Sending(self, peer, message)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer)

    def send_control(self, peer: int, message: bytes) -> None:
        if not self._closed:
            self._control_messages.send_control(peer, message)

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        return [] if self._closed else self._control_messages.poll_control()

    def idle(self, waited: float) -> None:
        if waited < GLANCE:
            os.sched_yield()
        else:
            self._mesh.waiters.sleep(NAP)

    def done(self, operation: Operation, peer: int, action: str) -> bool:
        """Whether it is; raises if the connection is lost."""
        with suppress(RuntimeError):
            return operation.done()
        raise self.lost(peer, action)

    def lost(self, peer: int, action: str) -> TransportError:
        """A connection has closed: raise what its end has said, or tell that it is gone."""
        self.control.begin_wait(peer, action)
        gone = self._mesh.dead() or [peer]
        deadline = self.now() + LAST_WORDS
        while self.now() < deadline:
            self.control.check()
            time.sleep(LAST_WORDS / 20)
        ranks = " and ".join(f"rank {self.global_ranks[rank]}" for rank in gone)
        how = "has closed its connection" if self.control.has_left(gone[0]) else "is gone"
        error = TransportError(
            f"{ranks} {how}, and rank {self.global_ranks[self.rank]} still waits in "
            f"{self.operation}, {action}"
        )
        self.control.abort(error)
        return error

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        total = array.copy()
        if self.size > 1 and array.size:
            # Nobody in particular is waited for; the next rank stands for all.
            peer, action = (self.rank + 1) % self.size, "native allreduce"
            operation = self._mesh.allreduce(total.reshape(-1), op)
            self.wait_for(lambda: self.done(operation, peer, action), peer, action)
        return total

    def duplicate(self) -> TorchTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> TorchTransport:
        self._children += 1
        name = f"{self._children}:{'.'.join(map(str, members))}"
        store = dist.PrefixStore(name, self._store)
        rank = list(members).index(self.rank)
        child = TorchTransport(store, rank, len(members), self.timeout)
        return self.add_sibling(child, members)

    def release(self) -> None:
        ShutdownHandler.instance().transports.discard(self)
        if self.control.failure is None:
            self._let_messages_leave()
            self.control.leave()
        self._closed = True
        self._mesh.close()
        self.peers.clear()  # what is awaited still holds on to gloo's threads and sockets
        del self._control_messages

    def _let_messages_leave(self) -> None:
        """The last frames may still wait for a peer that computes."""
        start = self.now()
        for peer in self.peers.values():
            with suppress(RuntimeError):  # it is gone: no use in waiting
                while not peer.all_left():
                    waited = self.now() - start
                    if waited > self.timeout:
                        return
                    self.idle(waited)
