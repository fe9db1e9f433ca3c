"""What every engine offers: bytes from rank to rank, in order, and no wait without an end.

A message is a one-dimensional uint8 array. Between two ranks messages arrive in the
order in which they were sent; there are no tags. Whoever sends a buffer leaves it alone
afterwards. What `receive` returns belongs to the receiver unless it is read-only.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .control import Control
from .nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .virtual.condition import Condition

Message: TypeAlias = NDArray[np.uint8]
EMPTY: Message = np.empty(0, np.uint8)
BRIEF = 50e-6  # seconds
PROGRESS = "sparcml progress"  # the name of threads begun with `start`
_T = TypeVar("_T", bound="Transport")


class Pending(ABC):
    """A message on its way; `wait` ends with it, or with an error that says why not."""

    def __init__(self, transport: Transport, peer: int, verb: str) -> None:
        self.transport = transport
        self.peer = peer
        self.verb = verb

    @abstractmethod
    def poll(self) -> bool:
        """Move it along without waiting; true once it is done."""

    def begin(self) -> bool:
        """Let it move along while another is waited for; true if it needs that no more."""
        return self.poll()

    @abstractmethod
    def result(self) -> Message:
        """What arrived (empty for a send), once `poll` has been true."""

    def wait(self) -> Message:
        """Until it is done, a peer reports an error, or the time is up."""
        self.transport.wait_for(self.poll, self.peer, self.verb)
        return self.result()


class Transport(ABC):
    """One rank's end of an engine. Only the thread that uses it may touch it."""

    engine: str  # its name, for people
    is_simulated = False  # whether `charge` does something

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank = rank
        self.size = size
        self.timeout = timeout
        self.operation = "start"  # what the caller is doing, for error messages
        self.input_summary = ""  # with which vector, if with one
        self.control = Control(self)
        self.siblings: list[Transport] = [self]  # this rank's ends made from one another
        self.global_ranks = list(
            range(size)
        )  # what ranks are called in messages: the world's
        self.nodes = Nodes((0,) * size)
        self.channel = "0"  # the same name on all ranks, another for each duplicate
        self._adopted = 0

    @abstractmethod
    def isend(self, peer: int, message: Message) -> Pending:
        """Start sending; the buffer must stay as it is until done."""

    @abstractmethod
    def irecv(self, peer: int) -> Pending:
        """Start receiving the next message of that peer, of whatever size."""

    @abstractmethod
    def send_control(self, peer: int, message: bytes) -> None:
        """Send a small note on the control channel; never waits."""

    @abstractmethod
    def poll_control(self) -> Sequence[tuple[int, bytes]]:
        """The notes that have arrived on the control channel, with their senders."""

    @abstractmethod
    def idle(self, waited: float) -> None:
        """Give the processor away between two polls, `waited` seconds after the first."""

    @abstractmethod
    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """The engine's own dense allreduce: a new array, the same on all ranks."""

    @abstractmethod
    def duplicate(self) -> Transport:
        """The same ranks, with channels of their own. All ranks call it."""

    @abstractmethod
    def split(self, members: Sequence[int]) -> Transport:
        """A group of these ranks, in this order; each calls it with its own group.

        All ranks must have come, so that an engine's blocking call ends at once.
        """

    @abstractmethod
    def release(self) -> None:
        """Give the engine's resources back; called once."""

    def adopt(self, child: _T, members: Sequence[int]) -> _T:
        """Take a group of these ranks into the family: they fail together."""
        child.global_ranks = [self.global_ranks[member] for member in members]
        child.nodes = self.nodes.subgroup(members)
        self._adopted += 1
        child.channel = f"{self.channel}.{self._adopted}"
        child.siblings = self.siblings
        self.siblings.append(child)
        return child

    def abort(self, error: BaseException) -> None:
        """Tell all peers, on every channel this rank shares with them."""
        self.control.abort(error)
        told = self.control.failure or error  # the same words everywhere
        for member in list(self.siblings):
            member.control.abort(told)

    def leave(self) -> None:
        """Tell all peers, on every channel, that this rank ends here."""
        for member in list(self.siblings):
            member.control.leave()

    def close(self) -> None:
        """Give the channels back; once is enough."""
        if self in self.siblings:
            self.siblings.remove(self)
            self.release()

    @property
    def allows_threads(self) -> bool:
        """Whether another thread may use another member of the family at the same time."""
        return True

    def start(self, work: Callable[[], None]) -> None:
        """Run something beside the caller, on this engine's clock."""
        threading.Thread(target=work, name=PROGRESS, daemon=True).start()

    def task(self) -> tuple[int, bool]:
        """Who runs: its number, and whether it was begun with `start`."""
        progress = threading.current_thread().name == PROGRESS
        return threading.get_ident(), progress

    def condition(self) -> Condition:
        """What the caller and something that was started can wait for together."""
        return threading.Condition()

    def now(self) -> float:
        """Seconds on this engine's clock."""
        return time.perf_counter()

    def advance(self, seconds: float) -> float:
        """Let time pass where it does so only when told; how much of it did."""
        del seconds
        return 0.0

    def charge(self, *, encoded: float = 0, merged: float = 0, written: float = 0) -> None:
        """Let the time pass that these entries take; see `Round` for what they are."""
        del encoded, merged, written

    def charge_poll(self) -> None:  # noqa: B027
        """Whoever only asks whether something is done must let time pass, too."""

    def send(self, peer: int, message: Message) -> None:
        """Send and wait until the buffer is free again."""
        self.isend(peer, message).wait()

    def receive(self, peer: int) -> Message:
        """Wait for the next message of that peer."""
        return self.irecv(peer).wait()

    def exchange(self, to: int, message: Message, source: int) -> Message:
        """Send to one peer while receiving from another (or the same)."""
        arriving = self.irecv(source)
        leaving = self.isend(to, message)
        received = arriving.wait()
        leaving.wait()
        return received

    def barrier(self) -> None:
        """No rank leaves before all have come (dissemination, log2 P rounds)."""
        distance = 1
        while distance < self.size:
            to = (self.rank + distance) % self.size
            self.exchange(to, EMPTY, (self.rank - distance) % self.size)
            distance *= 2

    def wait_for(self, poll: Callable[[], bool], peer: int, verb: str) -> None:
        """Poll until true, watching the control channel and the clock."""
        if poll():
            return
        self.control.begin_wait(peer, verb)
        start = self.now()
        waited = 0.0
        while not poll():
            if waited > BRIEF:  # whoever waits only a moment has no time for news
                self.control.check(waited)
            if waited > self.timeout:
                self.control.time_out(poll)
                break
            self.idle(waited)
            waited = self.now() - start
        self.control.end_wait()
