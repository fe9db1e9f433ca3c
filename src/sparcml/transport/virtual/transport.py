"""Ranks on a virtual clock: thousands of greenlets in one thread, deterministic.

Messages are passed by reference and marked read-only; nothing is copied. Their times on
the clock follow `links.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..base import EMPTY, Message, Pending, Transport
from .clock import VirtualCondition
from .cluster import Channel, NativeAllreduce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ...errors import SparcmlError
    from ..base import Condition
    from ..timeouts import Timeouts

POLL_SECONDS = 1e-6  # of one unsuccessful poll
IDLE_SECONDS = 0.01  # between two polls after the timeout


class _Sending(Pending):
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
        return True  # messages progress by themselves

    def result(self) -> Message:
        assert self._message is not None
        return self._message


class VirtualTransport(Transport):
    """One rank's end of a `Channel`.

    Attributes:
        cluster: The cluster of the ranks.
        mailbox: This rank's mailbox.
        pending_error: The error to raise in the current wait, after a deadlock.
    """

    engine = "virtual"
    is_simulated = True

    def __init__(self, channel: Channel, rank: int, timeouts: Timeouts) -> None:
        super().__init__(rank, len(channel.mailboxes), timeouts)
        self.cluster = channel.cluster
        self.mailbox = channel.mailboxes[rank]
        self.pending_error: SparcmlError | None = None
        self._clock = channel.cluster.clock
        self._channel = channel
        self._native_calls = 0

    def isend(self, peer: int, message: Message) -> Pending:
        message = message.view()
        message.flags.writeable = False
        source, target = self.global_ranks[self.rank], self.global_ranks[peer]
        cluster = self.cluster
        cluster.sent[source] += len(message)
        cluster.messages[source] += 1
        sent = cluster.links.send(self._clock.now, source, target, len(message))
        arrive = partial(self._channel.arrive, self.rank, peer, message, sent)
        self._clock.at(sent.first, arrive)
        return _Sending(self, peer, sent.left)

    def irecv(self, peer: int) -> Pending:
        return _Receiving(self, peer, f"receive from rank {self.global_ranks[peer]}")

    def _arrival(self, peer: int) -> float | None:
        """Return the arrival time of the peer's next message, if it is known."""
        queue = self.mailbox.messages.get(peer)
        return queue[0][0] if queue else None

    def send_control(self, peer: int, message: bytes) -> None:
        self._channel.mailboxes[peer].control.append((self.rank, message))
        self._channel.wake(peer)

    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        messages, self.mailbox.control = self.mailbox.control, []
        return messages

    def idle(self, waited: float) -> None:
        del waited
        self._clock.sleep_until(self._clock.now + IDLE_SECONDS)

    def wait_for(
        self,
        poll: Callable[[], bool],
        peer: int,
        action: str,
        idle: Callable[[float], object] | None = None,
    ) -> None:
        del idle  # the clock advances from event to event
        self._wait(poll, partial(self._arrival, peer), peer, action)

    def _wait(
        self,
        poll: Callable[[], bool],
        when: Callable[[], float | None],
        peer: int,
        action: str,
    ) -> None:
        """Wait until `poll` is true; `when` returns the time of that, once it is known."""
        clock = self._clock
        limit = None
        while not poll():
            if limit is None:
                self.control.begin_wait(peer, action)
                limit = clock.now + self.timeouts.busy
            self._check()
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

    def _check(self) -> None:
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
        """Reduce the arrays of all ranks; the time starts when the last rank arrives."""
        self._native_calls += 1
        number, channel = self._native_calls, self._channel
        call = channel.native_calls.setdefault(number, NativeAllreduce(self.size))
        if call.contribute(self.rank, array, op):
            work = self.cluster.work
            seconds = work.native(self.nodes, array.size, array.itemsize)
            call.ready = self._clock.now + seconds
            for rank in range(self.size):
                channel.wake(rank)
        self.cluster.sent[self.global_ranks[self.rank]] += (
            2 * (self.size - 1) * array.nbytes // self.size
        )

        def done() -> bool:
            return call.ready is not None and self._clock.now >= call.ready

        peer = call.missing_rank(self.rank)
        self._wait(done, lambda: call.ready, peer, "native allreduce")
        call.remaining -= 1
        if not call.remaining:
            del channel.native_calls[number]
            return call.result
        return call.result.copy()

    def abort(self, error: BaseException) -> None:
        super().abort(error)
        for sibling in self.siblings:  # this rank's background tasks must end too
            if isinstance(sibling, VirtualTransport):
                sibling._channel.wake(sibling.rank)

    def leave(self) -> None:
        """Record the end of this rank; ranks that wait for it are found as a deadlock."""
        self.cluster.left.add(self.global_ranks[self.rank])

    def duplicate(self) -> VirtualTransport:
        return self.split(range(self.size))

    def split(self, members: Sequence[int]) -> VirtualTransport:
        channel = self._channel.child((self.child_count, *members), len(members))
        child = VirtualTransport(channel, list(members).index(self.rank), self.timeouts)
        return self.add_sibling(child, members)

    def release(self) -> None:
        """Do nothing: the garbage collector frees the channel."""

    def start(self, work: Callable[[], None]) -> None:
        self._clock.spawn(work).is_background = True

    def task(self) -> tuple[int, bool]:
        return self._clock.current.number, self._clock.current.is_background

    def condition(self) -> Condition:
        return VirtualCondition(self._clock)

    def now(self) -> float:
        return self._clock.now

    def advance(self, seconds: float) -> float:
        return self.cluster.compute(self.global_ranks[self.rank], seconds)

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        work = self.cluster.work
        seconds = encoded * work.encoded + merged * work.merged + written * work.written
        speed = self.cluster.speed[self.global_ranks[self.rank]]
        self._clock.sleep_until(self._clock.now + seconds / speed)

    def charge_poll(self) -> None:
        self._clock.sleep_until(self._clock.now + POLL_SECONDS)
