"""Ranks on a virtual clock: greenlets of one thread, thousands of them, always the same.

A message is handed over by reference, marked read-only: nothing is copied. What it takes
is time on the clock, by `links.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..base import EMPTY, Message, Pending, Transport
from .channel import Channel, NativeAllreduce
from .condition import VirtualCondition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ...errors import SparcmlError
    from .condition import Condition

GLANCE = 1e-6  # seconds that it takes to see that something is not done
NAP = 0.01  # seconds between two looks, for whoever has waited too long already


class _Sent(Pending):
    transport: VirtualTransport

    def __init__(self, transport: VirtualTransport, peer: int, left: float) -> None:
        super().__init__(transport, peer, "send")
        self._clock = transport.cluster.clock
        self._left = left

    def poll(self) -> bool:
        return self._clock.now >= self._left

    def result(self) -> Message:
        return EMPTY

    def wait(self) -> Message:
        self._clock.sleep_until(self._left)
        return EMPTY


class _Receiving(Pending):
    transport: VirtualTransport
    _message: Message | None = None

    def poll(self) -> bool:
        if self._message is None:
            queue = self.transport.mailbox.messages.get(self.peer)
            if not queue or queue[0][0] > self.transport.now():
                return False
            _, self._message = queue.popleft()
        return True

    def begin(self) -> bool:
        return True  # messages move by themselves

    def result(self) -> Message:
        assert self._message is not None
        return self._message


class VirtualTransport(Transport):
    """One rank's end of a `Channel`."""

    engine = "virtual"
    is_simulated = True

    def __init__(self, team: Channel, rank: int, timeout: float) -> None:
        super().__init__(rank, len(team.mailboxes), timeout)
        self.cluster = team.cluster
        self.mailbox = team.mailboxes[rank]
        self.pending_error: SparcmlError | None = (
            None  # what to raise, as nothing moves any more
        )
        self._clock = team.cluster.clock
        self._team = team
        self._groups = self._native_calls = 0

    def isend(self, peer: int, message: Message) -> Pending:
        message = message.view()
        message.flags.writeable = False
        source, target = self.global_ranks[self.rank], self.global_ranks[peer]
        cluster = self.cluster
        cluster.sent[source] += len(message)
        cluster.messages[source] += 1
        sending = cluster.links.send(self._clock.now, source, target, len(message))
        arrive = partial(self._team.arrive, self.rank, peer, message, sending)
        self._clock.at(sending.first, arrive)
        return _Sent(self, peer, sending.left)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer, f"receive from rank {self.global_ranks[peer]}")

    def arrival(self, peer: int) -> float | None:
        """When the peer's next message is here, if that is known."""
        queue = self.mailbox.messages.get(peer)
        return queue[0][0] if queue else None

    def send_control(self, peer: int, message: bytes) -> None:
        self._team.mailboxes[peer].control.append((self.rank, message))
        self._team.wake(peer)

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        control, self.mailbox.control = self.mailbox.control, []
        return control

    def idle(self, waited: float) -> None:
        del waited
        self._clock.sleep_until(self._clock.now + NAP)

    def wait_for(self, poll: Callable[[], bool], peer: int, verb: str) -> None:
        self._wait(poll, partial(self.arrival, peer), peer, verb)

    def _wait(
        self,
        poll: Callable[[], bool],
        when: Callable[[], float | None],
        peer: int,
        verb: str,
    ) -> None:
        """Until it is done; `when` says at what time that is, as soon as it is known."""
        clock = self._clock
        limit = None
        while not poll():
            if limit is None:
                self.control.begin_wait(peer, verb)
                limit = clock.now + self.timeout
            self._listen()
            due = when()
            if due is not None and due <= limit:
                clock.sleep_until(due)
            elif clock.now >= limit:
                self.control.time_out(poll)
                break
            else:
                self._block(peer, limit)
        if limit is not None:
            self.control.end_wait()

    def _listen(self) -> None:
        if self.mailbox.control or self.control.failure is not None:
            self.control.check()
        if self.pending_error is not None:
            self.control.fail(self.pending_error)

    def _block(self, peer: int, limit: float) -> None:
        task = self._clock.current
        self.mailbox.waiter = task, peer
        self.cluster.waiting[task] = self, peer
        try:
            self._clock.block(limit)
        finally:
            self.mailbox.waiter = None
            del self.cluster.waiting[task]

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """All bring their vectors; the last to come starts the clock for all."""
        self._native_calls += 1
        number, team = self._native_calls, self._team
        pending = team.native_calls.setdefault(number, NativeAllreduce(self.size))
        if pending.contribute(self.rank, array, op):
            work = self.cluster.work
            seconds = work.native(self.nodes, array.size, array.itemsize)
            pending.ready = self._clock.now + seconds
            for rank in range(self.size):
                team.wake(rank)
        self.cluster.sent[self.global_ranks[self.rank]] += (
            2 * (self.size - 1) * array.nbytes // self.size
        )

        def done() -> bool:
            return pending.ready is not None and self._clock.now >= pending.ready

        peer = pending.missing_rank(self.rank)
        self._wait(done, lambda: pending.ready, peer, "native allreduce")
        pending.inside -= 1
        if not pending.inside:
            del team.native_calls[number]
            return pending.total
        return pending.total.copy()

    def abort(self, error: BaseException) -> None:
        super().abort(error)
        for member in self.siblings:  # what this rank does beside has to end, too
            if isinstance(member, VirtualTransport):
                member._team.wake(member.rank)

    def leave(self) -> None:
        """Nobody has to be told: whoever waits for this rank is seen to be stuck."""
        self.cluster.left.add(self.global_ranks[self.rank])

    def duplicate(self) -> VirtualTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> VirtualTransport:
        self._groups += 1
        team = self._team.child((self._groups, *members), len(members))
        child = VirtualTransport(team, list(members).index(self.rank), self.timeout)
        return self.adopt(child, members)

    def release(self) -> None:
        """Nothing to give back: the garbage collector has it."""

    def start(self, work: Callable[[], None]) -> None:
        self._clock.spawn(work).progress = True

    def task(self) -> tuple[int, bool]:
        return self._clock.current.number, self._clock.current.progress

    def condition(self) -> Condition:
        return VirtualCondition(self._clock)

    def now(self) -> float:
        return self._clock.now

    def advance(self, seconds: float) -> float:
        return self.cluster.compute(self.global_ranks[self.rank], seconds)

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        work = self.cluster.work
        seconds = encoded * work.coded + merged * work.merged + written * work.written
        speed = self.cluster.speed[self.global_ranks[self.rank]]
        self._clock.sleep_until(self._clock.now + seconds / speed)

    def charge_poll(self) -> None:
        self._clock.sleep_until(self._clock.now + GLANCE)
