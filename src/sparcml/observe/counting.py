"""Point-to-point messages over a transport, counted in `Stats`."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from ..transport.base import Pending

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..transport.base import Message, Transport
    from .stats import Stats


class CountingTransport:
    """Point-to-point messages over a transport, counted in `stats`."""

    def __init__(self, transport: Transport, stats: Stats) -> None:
        self.transport = transport
        self.stats = stats
        self.rank, self.size = transport.rank, transport.size

    def global_rank(self, rank: int) -> int:
        """Return the rank's number in the world, for messages to the user."""
        return self.transport.global_ranks[rank]

    def isend(
        self, peer: int, message: Message, round_number: int | None = None
    ) -> Pending:
        """Start a send, see `Transport.isend`."""
        self.stats.count_sent(peer, len(message))
        with self.stats.phase("send", peer=peer, bytes=len(message), round=round_number):
            return self.transport.isend(peer, message)

    def irecv(self, peer: int) -> Pending:
        """Start a receive, see `Transport.irecv`."""
        return self.transport.irecv(peer)

    def finish(self, pending: Pending, round_number: int | None = None) -> Message:
        """Wait for a message that was started with `irecv` or `isend`."""
        with self.stats.phase("wait", peer=pending.peer, round=round_number) as args:
            message = pending.wait()
            args["bytes"] = len(message) or None
        if len(message):
            self.stats.count_received(len(message))
        return message

    def finish_each(
        self,
        pendings: Sequence[Pending],
        round_number: int | None = None,
        sends: Pending | None = None,
    ) -> Iterator[Message]:
        """Yield the messages in the given order, while all of them, and sends, progress."""
        queues: dict[int, deque[Pending]] = {}  # messages of one peer arrive in order
        for pending in pendings:
            queues.setdefault(pending.peer, deque()).append(pending)

        def poll(awaited: Pending) -> bool:
            if sends is not None:
                sends.poll()
            for peer, queue in list(queues.items()):
                while queue and queue[0].begin():
                    queue.popleft()
                if not queue:
                    del queues[peer]
            return awaited.poll()

        for pending in pendings:
            with self.stats.phase("wait", peer=pending.peer, round=round_number) as args:
                poll_it = partial(poll, pending)
                self.transport.wait_for(poll_it, pending.peer, pending.action)
                message = pending.result()
                args["bytes"] = len(message) or None
            if len(message):
                self.stats.count_received(len(message))
            yield message


class SendsInTurn(Pending):
    """Messages to several ranks, each of which starts when the one before has been sent.

    Large messages in turn have a link for themselves. On a ring of 8 ranks that was faster than
    two at once (docs/decentralized.md).
    """

    def __init__(
        self,
        transport: CountingTransport,
        messages: Mapping[int, Message],
        round_number: int | None,
    ) -> None:
        self._rest = deque(messages.items())
        self._counting, self._round = transport, round_number
        self._current: Pending = self._start()
        super().__init__(transport.transport, self._current.peer, self._current.action)

    def _start(self) -> Pending:
        peer, message = self._rest.popleft()
        return self._counting.isend(peer, message, self._round)

    def poll(self) -> bool:
        """Make progress; return whether all messages are sent."""
        while self._current.poll():
            if not self._rest:
                return True
            self._current = self._start()
            self.peer, self.action = self._current.peer, self._current.action
        return False

    def result(self) -> Message:
        """Return the empty message of the last send."""
        return self._current.result()


class SubgroupTransport(CountingTransport):
    """Point-to-point messages between some of the ranks, numbered from 0 among themselves.

    Args:
        parent: The counting transport of all ranks.
        ranks: The members, in order.
        first_round: Number of their first round, for traces.
    """

    def __init__(
        self, parent: CountingTransport, ranks: Sequence[int], first_round: int = 0
    ) -> None:
        super().__init__(parent.transport, parent.stats)
        self.rank, self.size = ranks.index(parent.rank), len(ranks)
        self._ranks, self._first_round = ranks, first_round

    def global_rank(self, rank: int) -> int:
        """Return the rank's number in the world, for messages to the user."""
        return super().global_rank(self._ranks[rank])

    def isend(
        self, peer: int, message: Message, round_number: int | None = None
    ) -> Pending:
        """Start a send, see `Transport.isend`."""
        return super().isend(self._ranks[peer], message, self._offset(round_number))

    def irecv(self, peer: int) -> Pending:
        """Start a receive, see `Transport.irecv`."""
        return super().irecv(self._ranks[peer])

    def finish(self, pending: Pending, round_number: int | None = None) -> Message:
        """Wait for a message that was started with `irecv` or `isend`."""
        return super().finish(pending, self._offset(round_number))

    def finish_each(
        self,
        pendings: Sequence[Pending],
        round_number: int | None = None,
        sends: Pending | None = None,
    ) -> Iterator[Message]:
        """Yield the messages in the given order, while all of them, and sends, progress."""
        return super().finish_each(pendings, self._offset(round_number), sends)

    def _offset(self, round_number: int | None) -> int | None:
        return None if round_number is None else self._first_round + round_number
