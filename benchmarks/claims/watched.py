"""Thread ranks whose messages are recorded: entries, bytes, and their dependencies."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sparcml import wire
from sparcml.transport import Pending, ThreadGroup, ThreadTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparcml.transport import Message

T = TypeVar("T")
TIMEOUT = 60.0  # seconds; 64 ranks share the cores of one machine


class Sent(NamedTuple):
    """One sent message.

    Attributes:
        chain: Number of dependent messages up to this one.
        formats: Value formats in it, by their numbers on the wire.
    """

    source: int
    target: int
    entries: int
    nbytes: int
    chain: int
    formats: frozenset[int]


class Watched(ThreadTransport):
    """A rank that records what it sends, with a logical clock that counts hops."""

    def __init__(self, team: Team, rank: int) -> None:
        super().__init__(team, rank, TIMEOUT)
        self.team = team
        self.clock = 0
        self.sent: list[Sent] = []

    def isend(self, peer: int, message: Message) -> Pending:
        """Record the message before it is sent."""
        entries, formats = contents(message)
        chain = self.clock + 1
        self.sent.append(Sent(self.rank, peer, entries, len(message), chain, formats))
        self.team.hops[self.rank][peer].append(chain)
        return super().isend(peer, message)

    def irecv(self, peer: int) -> Pending:
        """Advance the clock to that of the message."""
        return _Arriving(self, super().irecv(peer))


class _Arriving(Pending):
    def __init__(self, to: Watched, inner: Pending) -> None:
        super().__init__(to, inner.peer, inner.action)
        self._to, self._inner = to, inner

    def poll(self) -> bool:
        return self._inner.poll()

    def result(self) -> Message:
        chain = self._to.team.hops[self.peer][self._to.rank].popleft()
        self._to.clock = max(self._to.clock, chain)
        return self._inner.result()


class Team(ThreadGroup):
    """Mailboxes of threads that also hold the chain of each message."""

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks)
        self.hops: list[list[deque[int]]] = [
            [deque() for _ in range(ranks)] for _ in range(ranks)
        ]


def contents(message: Message) -> tuple[int, frozenset[int]]:
    """Return entries and value formats of a message, or of a bundle of messages."""
    entries, formats, rest = 0, set(), message
    while len(rest):
        header = wire.Header.read(rest)
        entries += header.nnz
        formats.add(header.value_format)
        rest = rest[wire.message_length(rest) :]
    return entries, frozenset(formats)


def run(ranks: int, body: Callable[[Watched], T]) -> tuple[list[T], list[Sent]]:
    """Return the result of each rank, and all sent messages."""

    def guarded(link: Watched) -> T:
        try:
            return body(link)
        except BaseException as error:
            link.abort(error)  # so that the others do not wait for it
            raise

    team = Team(ranks)
    watched = [Watched(team, rank) for rank in range(ranks)]
    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(guarded, watched))
    return results, [message for rank in watched for message in rank.sent]


def per_rank(ranks: int, sent: Sequence[Sent], key: str, end: str = "source") -> list[int]:
    """Return the sum of a field over the messages that each rank sent or, by target, received."""
    totals = [0] * ranks
    for message in sent:
        totals[getattr(message, end)] += getattr(message, key)
    return totals


def fan_in(ranks: int, sent: Sequence[Sent]) -> int:
    """Return the largest number of peers that a rank received messages from."""
    pairs = {(message.target, message.source) for message in sent}
    return max(sum(target == rank for target, _ in pairs) for rank in range(ranks))
