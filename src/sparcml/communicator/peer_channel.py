"""Messages between single ranks, apart from the collectives: for asynchronous methods.

Collectives are calls that all ranks make in the same order. A channel has no order between
ranks: a rank sends when it wants to, and a receiver looks for messages when it has time. Only
messages of one sender to one receiver keep their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from ..collectives.base import call_code
from ..errors import MismatchError, WireError
from ..observe import CountingTransport
from ..stream import Stream
from ..transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stream.arrays import Values
    from ..transport import Pending
    from .communicator import Communicator

CALL = "neighbor_exchange"  # whose messages these are, but for the order between ranks


class PeerChannel:
    """One rank's end of a channel. Its creation is collective.

    Args:
        comm: Communicator of the ranks. Messages have channels of their own and are counted in
            its statistics.
    """

    def __init__(self, comm: Communicator) -> None:
        self._transport = comm._duplicate_transport()
        self._transport.operation = "point_to_point"
        self._link = CountingTransport(self._transport, comm.stats)
        self._receiving: dict[int, Pending] = {}
        self._sending: list[Pending] = []
        self._sent = [0] * comm.size
        self._received = [0] * comm.size

    def send(self, peer: int, kind: int, x: Values) -> None:
        """Start to send a copy of a vector, and return at once.

        Args:
            peer: Receiving rank.
            kind: Number from 0 to 255 by which the receiver knows what this is.
            x: The vector.
        """
        self._transport.control.check()
        tag = wire.Tag(call_code(CALL, "sum"), self._sent[peer], kind)
        stream = Stream.unchecked(x.size, None, x)
        message, _ = wire.encode(stream, tag, see=False)
        self._sending = [pending for pending in self._sending if not pending.poll()]
        self._sending.append(self._link.isend(peer, message))
        self._sent[peer] += 1

    def poll(self, peer: int) -> tuple[int, Stream] | None:
        """Return the kind and the vector of the peer's next message; None if there is none.

        Raises:
            TransportError: If a rank has failed.
        """
        self._transport.control.check()
        pending = self._receiving.pop(peer, None) or self._link.irecv(peer)
        if not pending.poll():
            self._receiving[peer] = pending
            self._transport.charge_poll()
            return None
        message = pending.result()
        self._link.stats.count_received(len(message))
        try:
            header = wire.verify(message)
            stream = wire.decode(message, 0.0, header=header)
        except WireError as error:
            raise WireError(
                f"rank {self._link.global_rank(self._link.rank)} received a malformed message "
                f"from rank {self._link.global_rank(peer)}: {error}"
            ) from None
        if header.tag.call != call_code(CALL, "sum") or (
            header.tag.sequence != self._received[peer] & 0xFFFFFFFF
        ):
            raise MismatchError(
                f"rank {self._link.global_rank(self._link.rank)} expects message "
                f"{self._received[peer]} of rank {self._link.global_rank(peer)}, got "
                f"{header.tag.sequence} of call {header.tag.call}"
            )
        self._received[peer] += 1
        return header.tag.round, stream

    def wait_until(self, done: Callable[[], bool], peer: int, action: str) -> None:
        """Wait until a function that polls returns true, with the errors of a collective.

        Args:
            done: Polls, and returns whether the wait is over.
            peer: A rank that this one waits for, for error messages.
            action: Description for error messages.
        """
        # The engine's own wait may look for messages of one peer alone.
        Transport.wait_for(self._transport, done, peer, action)

    def finish_sends(self) -> None:
        """Wait until all messages have left."""
        for pending in self._sending:
            self._link.finish(pending)
        self._sending.clear()
