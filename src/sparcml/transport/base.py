"""Interface of all engines: ordered messages between ranks; every wait has a timeout.

A message is a one-dimensional uint8 array. Messages between two ranks arrive in the
order in which they were sent; there are no tags. A sender must not modify a buffer after
sending it. A received message belongs to the receiver unless it is read-only.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import TransportError
from .bootstrap import allgather
from .control import Control
from .nodes import Nodes
from .processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from .timeouts import Timeouts

Message: TypeAlias = NDArray[np.uint8]
EMPTY: Message = np.empty(0, np.uint8)
# Limit of messages in calls to which each rank may contribute a vector of another size.
PHYSICAL_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
SHORT_WAIT = 50e-6  # seconds of a wait before control messages are read
BACKGROUND = "sparcml progress"  # name of the threads that `start` creates
_T = TypeVar("_T", bound="Transport")


_forks = 0  # between this process and the one that imported this module


def _count_fork() -> None:
    global _forks  # noqa: PLW0603
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Condition(Protocol):
    """The part of `threading.Condition` that requests use."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until the predicate is true or the time is up; return its last value."""

    def notify_all(self) -> None:
        """Wake all waiting tasks."""


class Pending(ABC):
    """A message in flight. `wait` returns it, or raises an error that names the cause.

    Attributes:
        transport: The transport of the message.
        peer: Rank at the other end.
        action: Description for error messages, such as "receive from rank 3".
    """

    def __init__(self, transport: Transport, peer: int, action: str) -> None:
        self.transport = transport
        self.peer = peer
        self.action = action

    @abstractmethod
    def poll(self) -> bool:
        """Make progress without waiting; return whether the message is complete."""

    def begin(self) -> bool:
        """Make progress during another wait; return whether that is no longer needed."""
        return self.poll()

    @abstractmethod
    def result(self) -> Message:
        """Return the received message (empty for a send), once `poll` was true."""

    def wait(self) -> Message:
        """Wait until the message is complete, a peer reports an error, or the timeout."""
        self.transport.wait_for(self.poll, self.peer, self.action)
        return self.result()


class Transport(ABC):
    """One rank's end of an engine. Only one thread at a time may use it.

    Attributes:
        engine: Name of the engine.
        is_simulated: Whether the clock is virtual, so that `charge` advances it.
        segment_bytes: Longest message that `functions` sends in one piece.
        in_turn_bytes: Longest message that is sent to several neighbours at once; 0 for all.
        native_algorithm: Algorithm of `native_allreduce`, see `Nodes`.
        input_summary: Description of the current call's input, for error messages.
        longest_message: Bytes of the longest message that the current call may receive. Of a
            longer one only the beginning is received.
        control: State of the control channel.
        siblings: This rank's transports that were made from one another.
        global_ranks: The ranks' numbers in the world, for messages to the user.
        nodes: Placement of the ranks on nodes.
        processes: Processes of the ranks, as far as they are known.
        timeouts: Timeouts of all waits.
        channel_id: The same on all ranks, and different for each duplicate.
        child_count: Number of duplicates and splits so far, the same on all ranks.
    """

    engine: str
    is_simulated = False
    segment_bytes = 0
    in_turn_bytes = 0
    native_algorithm = "ring"

    def __init__(self, rank: int, size: int, timeouts: Timeouts) -> None:
        self.rank = rank
        self.size = size
        self.timeouts = timeouts
        self._operation: object = "start"
        self.input_summary = ""
        self.longest_message = PHYSICAL_MEMORY
        self.control = Control(self)
        self.siblings: list[Transport] = [self]
        self.global_ranks = list(range(size))
        self.nodes = Nodes((0,) * size, native_algorithm=self.native_algorithm)
        self.processes = Processes([None] * size, [None] * size)
        self.channel_id = "0"
        self.child_count = 0
        self._forks = _forks

    @abstractmethod
    def isend(self, peer: int, message: Message) -> Pending:
        """Start a send; the buffer must not change until it is complete."""

    @abstractmethod
    def irecv(self, peer: int) -> Pending:
        """Start a receive of the peer's next message, of any size."""

    @abstractmethod
    def send_control(self, peer: int, message: bytes) -> None:
        """Send a short message on the control channel, without waiting."""

    @abstractmethod
    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        """Return the senders and the control messages that have arrived."""

    @abstractmethod
    def idle(self, waited: float) -> None:
        """Yield the processor between two polls, `waited` seconds after the first."""

    def functions(self) -> Any:
        """Return the functions of the engine for the compiled message loop, or None."""
        return None

    def lost_by_code(self, code: int, peer: int, action: str) -> TransportError:
        """Return the error of a function of the engine that has returned an error code."""
        del peer
        return TransportError(f"rank {self.rank}: error {code} in {action}")

    @abstractmethod
    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """Return the result of the engine's own dense allreduce, a new array."""

    @abstractmethod
    def duplicate(self) -> Transport:
        """Return a transport of the same ranks with channels of its own. Collective."""

    @abstractmethod
    def split(self, members: Sequence[int]) -> Transport:
        """Return a transport of the given ranks, in this order. Collective.

        Each rank passes the members of its own group. All ranks must have arrived, so
        that a blocking call of the engine ends at once.
        """

    def decline_split(self) -> None:
        """Take part in a split that the other ranks make, without joining a group."""
        self.child_count += 1

    @abstractmethod
    def release(self) -> None:
        """Free the engine's resources; called once."""

    def add_sibling(self, child: _T, members: Sequence[int]) -> _T:
        """Add a transport of some of these ranks, which shares this one's errors."""
        child.global_ranks = [self.global_ranks[member] for member in members]
        child.nodes = self.nodes.subgroup(members)
        child.processes = self.processes.subgroup(members)
        self.child_count += 1
        child.channel_id = f"{self.channel_id}.{self.child_count}"
        child.siblings = self.siblings
        self.siblings.append(child)
        return child

    @property
    def operation(self) -> str:
        """The current or last call, for error messages.

        It may be set to an object whose string describes the call, and is only needed then.
        """
        return str(self._operation)

    @operation.setter
    def operation(self, call: object) -> None:
        self._operation = call

    @property
    def is_forked(self) -> bool:
        """Whether this process is a child that the rank has forked, and not the rank."""
        return _forks != self._forks

    def abort(self, error: BaseException) -> None:
        """Send an error to all peers, on every channel shared with them."""
        if self.is_forked:
            return
        self.control.abort(error)
        error = self.control.failure or error  # the same text on every channel
        for sibling in list(self.siblings):
            sibling.control.abort(error)

    def leave(self) -> None:
        """Tell all peers on every channel that this rank ends."""
        for sibling in list(self.siblings):
            sibling.control.leave()

    def close(self) -> None:
        """Free the channels; a second call does nothing."""
        if self in self.siblings and not self.is_forked:
            self.siblings.remove(self)
            self.release()
            if not self.siblings:
                self.processes.close()

    @property
    def allows_threads(self) -> bool:
        """Whether another thread may use a sibling at the same time."""
        return True

    def start(self, work: Callable[[], None]) -> None:
        """Run a function concurrently, on this engine's clock."""
        threading.Thread(target=work, name=BACKGROUND, daemon=True).start()

    def task(self) -> tuple[int, bool]:
        """Return the number of the current task, and whether `start` created it."""
        is_background = threading.current_thread().name == BACKGROUND
        return threading.get_ident(), is_background

    def condition(self) -> Condition:
        """Return a condition variable for the caller and a function that was started."""
        return threading.Condition()

    def now(self) -> float:
        """Return the seconds on this engine's clock."""
        return time.perf_counter()

    def advance(self, seconds: float) -> float:
        """Advance a virtual clock; return the seconds by which it was advanced."""
        del seconds
        return 0.0

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        """Advance a virtual clock by the computing time of entries, see `Round`."""
        del encoded, merged, written

    def charge_poll(self) -> None:  # noqa: B027
        """Advance a virtual clock by the time of one poll, so that polling loops end."""

    def send(self, peer: int, message: Message) -> None:
        """Send, and wait until the buffer may be reused."""
        self.isend(peer, message).wait()

    def receive(self, peer: int) -> Message:
        """Wait for the peer's next message."""
        return self.irecv(peer).wait()

    def exchange(self, to: int, message: Message, source: int) -> Message:
        """Send to one peer while receiving from another (or the same)."""
        receiving = self.irecv(source)
        sending = self.isend(to, message)
        received = receiving.wait()
        sending.wait()
        return received

    def barrier(self) -> None:
        """Wait until all ranks have called this. Collective."""
        allgather(self, b"")

    def wait_for(
        self,
        poll: Callable[[], bool],
        peer: int,
        action: str,
        idle: Callable[[float], object] | None = None,
    ) -> None:
        """Poll until true, while reading control messages and checking the timeouts.

        Args:
            poll: Returns whether the wait is over.
            peer: Rank that this one waits for.
            action: Description for error messages.
            idle: Replacement of `idle`, for waits that poll something else.
        """
        idle = idle or self.idle
        if poll():
            return
        self.control.begin_wait(peer, action)
        start = self.now()
        waited = 0.0
        while not poll():
            if waited > SHORT_WAIT:
                self.control.check(waited)
            if waited > self.timeouts.busy:
                self.control.time_out(poll)
                break
            idle(waited)
            waited = self.now() - start
        self.control.end_wait()
