"""What has passed: messages, bytes and seconds per phase, counted where they happen."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .base import Message, Pending, Transport
    from .timeline import About, Timeline

PHASES = ("select", "encode", "send", "wait", "decode", "add")


@dataclass
class Prediction:
    """Calls of one algorithm: what they were predicted to take, and what they took."""

    calls: int = 0
    predicted: float = 0.0  # seconds, of all calls together
    measured: float = 0.0


@dataclass
class Stats:
    """What one rank has sent and received since the start or the last `reset`."""

    messages: int = 0
    bytes: int = 0
    received_messages: int = 0
    received_bytes: int = 0
    native_bytes: int = 0  # of engines' own sums, which count none: what a ring sends
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    selected: int = 0  # entries that sparsifiers have chosen
    squares_sent: float = 0.0  # of these entries
    squares_owed: float = 0.0  # of the vectors they were chosen from
    allreduces: dict[str, Prediction] = field(default_factory=dict)  # by algorithm
    sent: list[tuple[int, int]] | None = None  # (peer, bytes) of each message, if kept
    trace: Timeline | None = field(default=None, repr=False)  # where events go, if so
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count_sent(self, peer: int, nbytes: int) -> None:
        """One message has left."""
        with self._lock:  # requests are counted by another thread
            self.messages += 1
            self.bytes += nbytes
            if self.sent is not None:
                self.sent.append((peer, nbytes))

    def count_received(self, nbytes: int) -> None:
        """One message has come."""
        with self._lock:
            self.received_messages += 1
            self.received_bytes += nbytes

    def count_native(self, nbytes: int) -> None:
        """The engine has summed something by itself."""
        with self._lock:
            self.native_bytes += nbytes

    def count_selected(self, entries: int, sent: float, owed: float) -> None:
        """So many entries were chosen, and their squares of all squares."""
        with self._lock:
            self.selected += entries
            if math.isfinite(owed):
                self.squares_sent += sent
                self.squares_owed += owed

    def count_allreduce(self, algorithm: str, predicted: float, measured: float) -> None:
        """One more, and its seconds."""
        with self._lock:
            known = self.allreduces.setdefault(algorithm, Prediction())
            known.calls += 1
            known.predicted += predicted
            known.measured += measured

    @property
    def share(self) -> float | None:
        """Which part of the norm of what was owed was chosen to be sent.

        None if nothing was chosen, since everything is sent. What quantizers change is not
        in it. Entries that are scaled up count as they are sent, so it may be above 1.
        """
        if not self.squares_owed:
            return None
        return math.sqrt(self.squares_sent / self.squares_owed)

    def reset(self) -> None:
        """Count from zero again."""
        self.selected, self.squares_sent, self.squares_owed = 0, 0.0, 0.0
        self.messages = self.bytes = self.received_messages = self.received_bytes = 0
        self.native_bytes = 0
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.allreduces = {}
        if self.sent is not None:
            self.sent = []

    def phase(self, name: str, **about: int | None) -> _Phase:
        """Time what is done inside; what is known about it can be added to the result."""
        return _Phase(self, name, about)

    def count_phase(self, name: str, start: float, end: float, about: About) -> None:
        """Something has been done."""
        with self._lock:
            self.seconds[name] += end - start
        trace = self.trace  # another thread may end it
        if trace is not None:
            trace.add(name, start, end, about)


class _Phase:
    """A generator would do the same, at four times the cost: every message has several."""

    __slots__ = ("_about", "_name", "_start", "_stats")

    def __init__(self, stats: Stats, name: str, about: About) -> None:
        self._stats, self._name, self._about = stats, name, about

    def __enter__(self) -> About:
        self._start = self._stats.clock()
        return self._about

    def __exit__(self, *error: object) -> None:
        end = self._stats.clock()
        self._stats.count_phase(self._name, self._start, end, self._about)


class CountingTransport:
    """Point to point over a transport, counted in `stats`."""

    def __init__(self, transport: Transport, stats: Stats) -> None:
        self.transport = transport
        self.stats = stats
        self.rank, self.size = transport.rank, transport.size

    def global_rank(self, rank: int) -> int:
        """What a rank is called in messages."""
        return self.transport.global_ranks[rank]

    def isend(
        self, peer: int, message: Message, round_number: int | None = None
    ) -> Pending:
        """As the transport's."""
        self.stats.count_sent(peer, len(message))
        with self.stats.phase("send", peer=peer, bytes=len(message), round=round_number):
            return self.transport.isend(peer, message)

    def irecv(self, peer: int) -> Pending:
        """As the transport's."""
        return self.transport.irecv(peer)

    def finish(self, pending: Pending, round_number: int | None = None) -> Message:
        """Wait for a message that was started with `irecv` or `isend`."""
        with self.stats.phase("wait", peer=pending.peer, round=round_number) as about:
            message = pending.wait()
            about["bytes"] = len(message) or None
        if len(message):
            self.stats.count_received(len(message))
        return message

    def finish_each(
        self, pendings: Sequence[Pending], round_number: int | None = None
    ) -> Iterator[Message]:
        """Wait for one after the other, in this order, while all of them move along."""
        queues: dict[int, deque[Pending]] = {}  # a peer's messages come in their order
        for pending in pendings:
            queues.setdefault(pending.peer, deque()).append(pending)

        def poll(awaited: Pending) -> bool:
            for peer, queue in list(queues.items()):
                while queue and queue[0].begin():
                    queue.popleft()
                if not queue:
                    del queues[peer]
            return awaited.poll()

        for pending in pendings:
            with self.stats.phase("wait", peer=pending.peer, round=round_number) as about:
                poll_it = partial(poll, pending)
                self.transport.wait_for(poll_it, pending.peer, pending.verb)
                message = pending.result()
                about["bytes"] = len(message) or None
            if len(message):
                self.stats.count_received(len(message))
            yield message


class SubgroupTransport(CountingTransport):
    """The same between some of the ranks, which count from 0 among themselves.

    Args:
        link: Between all.
        ranks: Who they are, in their order.
        first: The number of their first round, for traces.
    """

    def __init__(
        self, link: CountingTransport, ranks: Sequence[int], first: int = 0
    ) -> None:
        super().__init__(link.transport, link.stats)
        self.rank, self.size = ranks.index(link.rank), len(ranks)
        self._ranks, self._first = ranks, first

    def global_rank(self, rank: int) -> int:
        """What a rank is called in messages."""
        return super().global_rank(self._ranks[rank])

    def isend(
        self, peer: int, message: Message, round_number: int | None = None
    ) -> Pending:
        """As the transport's."""
        return super().isend(self._ranks[peer], message, self._later(round_number))

    def irecv(self, peer: int) -> Pending:
        """As the transport's."""
        return super().irecv(self._ranks[peer])

    def finish(self, pending: Pending, round_number: int | None = None) -> Message:
        """As between all."""
        return super().finish(pending, self._later(round_number))

    def finish_each(
        self, pendings: Sequence[Pending], round_number: int | None = None
    ) -> Iterator[Message]:
        """As between all."""
        return super().finish_each(pendings, self._later(round_number))

    def _later(self, round_number: int | None) -> int | None:
        return None if round_number is None else self._first + round_number
