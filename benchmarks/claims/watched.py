"""Ranks as threads, with every message watched: entries, bytes, and what it waited for."""

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
    """One message as it left.

    Attributes:
        chain: How many messages had to follow each other until this one arrived.
        formats: How the values in it are coded, by the numbers of the wire format.
    """

    source: int
    target: int
    entries: int
    nbytes: int
    chain: int
    formats: frozenset[int]


class Watched(ThreadTransport):
    """A rank that keeps what it sends, with a logical clock that counts hops."""

    def __init__(self, team: Team, rank: int) -> None:
        super().__init__(team, rank, TIMEOUT)
        self.team = team
        self.clock = 0
        self.sent: list[Sent] = []

    def isend(self, peer: int, message: Message) -> Pending:
        """Note it first: the receiver may be quick."""
        entries, formats = contents(message)
        chain = self.clock + 1
        self.sent.append(Sent(self.rank, peer, entries, len(message), chain, formats))
        self.team.hops[self.rank][peer].append(chain)
        return super().isend(peer, message)

    def irecv(self, peer: int) -> Pending:
        """What arrives moves the clock."""
        return _Arriving(self, super().irecv(peer))


class _Arriving(Pending):
    def __init__(self, to: Watched, inner: Pending) -> None:
        super().__init__(to, inner.peer, inner.verb)
        self._to, self._inner = to, inner

    def poll(self) -> bool:
        return self._inner.poll()

    def result(self) -> Message:
        chain = self._to.team.hops[self.peer][self._to.rank].popleft()
        self._to.clock = max(self._to.clock, chain)
        return self._inner.result()


class Team(ThreadGroup):
    """The threads' mailboxes, and beside each message its place in the chain."""

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks)
        self.hops: list[list[deque[int]]] = [
            [deque() for _ in range(ranks)] for _ in range(ranks)
        ]


def contents(message: Message) -> tuple[int, frozenset[int]]:
    """Entries and value formats of a message, or of several in one bundle."""
    entries, formats, rest = 0, set(), message
    while len(rest):
        header = wire.Header.read(rest)
        entries += header.nnz
        formats.add(header.value_format)
        rest = rest[wire.message_length(rest) :]
    return entries, frozenset(formats)


def run(ranks: int, body: Callable[[Watched], T]) -> tuple[list[T], list[Sent]]:
    """What each rank returned, and all messages that were sent."""

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
    """The sum of a field over the messages that each rank sent or, by target, got."""
    totals = [0] * ranks
    for message in sent:
        totals[getattr(message, end)] += getattr(message, key)
    return totals


def fan_in(ranks: int, sent: Sequence[Sent]) -> int:
    """From how many others the rank with most of them got messages."""
    pairs = {(message.target, message.source) for message in sent}
    return max(sum(target == rank for target, _ in pairs) for rank in range(ranks))
