"""Control channel: reports of ranks that have raised, stalled or left.

In most collectives a rank communicates with few others, so it would never notice that
some other rank has failed. Therefore a rank that raises reports this to all ranks, and
every wait reads such reports. A long wait looks whether the process of its peer is alive. A
wait that times out first asks all ranks which rank they wait for. The error then names the
rank at the end of that chain, not the next neighbour.

Control messages are text: a letter for the type, then fields separated by unit separators.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from ..errors import MismatchError, SparcmlError, TransportError, WireError
from .processes import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .base import Transport

LOGGER = logging.getLogger("sparcml")
SEPARATOR, INPUT = "\x1f", "\x1e"  # INPUT separates a call from the summary of its input
ABORT, WAITING, LEFT = "A", "W", "L"
QUESTION, ANSWER = "?", "!"
QUESTION_SECONDS = 1.0  # of waiting, before a rank asks which ranks the others wait for
LOOK_SECONDS = 0.5  # between two looks at the process of the peer
ENDED, CLOSED = "has ended", "has closed the communicator"  # how a rank leaves
CUT = "cannot be reached (a link is cut, or a machine is down)"
PLURALS = {"is": "are", "has": "have"}
LAST_SECONDS = 1.0  # for the last messages of a rank that has ended
ERRORS: dict[str, type[SparcmlError]] = {
    error.__name__: error for error in (TransportError, WireError, MismatchError)
}


class Control:
    """One rank's knowledge of the state of all ranks.

    Attributes:
        failure: The error that has ended the communication, if there was one.
        is_origin: Whether this rank was the first to raise.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._wait: tuple[int, str] | None = None  # this rank's: the peer, and the call
        self._asked = False  # the other ranks, in this wait
        self._waits: dict[int, tuple[int, str]] = {}  # of the ranks that have reported
        self._left: dict[int, tuple[float, str]] = {}  # when a rank left, and how
        self._next_look = 0.0  # at the peer's process: seconds of this wait
        self._silent_since: float | None = None  # when the peer was first seen like that
        self._has_reported = False  # a long wait for a busy rank
        self.failure: SparcmlError | None = None
        self.is_origin = False

    def begin_wait(self, peer: int, action: str) -> None:
        """Record that this rank starts to wait for a peer."""
        self._wait = (peer, f"{self._transport.operation}, {action}")
        self._asked = False
        self._next_look, self._silent_since = self._look_seconds, None

    def end_wait(self) -> None:
        """Record that the wait has ended without an error."""
        self._wait = None

    @property
    def waiting(self) -> tuple[int, str] | None:
        """The peer that this rank waits for, and its call with the summary of the input."""
        if self._wait is None:
            return None
        peer, call = self._wait
        return peer, call + INPUT + self._transport.input_summary

    def record_wait(self, rank: int, waiting: tuple[int, str] | None) -> None:
        """Record what another rank waits for, without asking it."""
        if waiting is not None:
            self._waits[rank] = waiting

    def check(self, waited: float = 0.0) -> None:
        """Read control messages; raise if a peer has raised or will never answer.

        A long wait asks the other ranks once. Ranks that wait for each other in different
        calls are thus found before the timeout.
        """
        self._read()
        if self.failure is not None:
            raise self.failure
        if waited > QUESTION_SECONDS and not self._asked:
            self._asked = True
            self._ask()
        elif self._asked and (mismatch := self.find_mismatch()) is not None:
            self.fail(mismatch)
        if self._wait is None:
            return
        peer = self._wait[0]
        if peer in self._left:
            since, how = self._left[peer]
            self._fail_if_silent(peer, how, since, self._last_seconds)
        elif waited > self._next_look:
            self._next_look = waited + self._look_seconds
            self._look_at(peer, waited)

    def _look_at(self, peer: int, waited: float) -> None:
        """Raise if the process of a peer is dead, or has been stopped for too long."""
        state = self._transport.processes.state(peer)
        if state in (State.ALIVE, State.UNKNOWN):
            self._silent_since = None
            self._report(peer, waited)
            return
        if state is State.UNREACHABLE:  # the kernel has waited for the limit
            raise self.lose(self._transport.processes.lost(), CUT)
        if self._silent_since is None:
            self._silent_since = self._transport.now()
        if state is State.DEAD:
            self._fail_if_silent(peer, "is gone", self._silent_since, self._last_seconds)
        else:
            limit = self._transport.timeouts.silent
            how = f"has not answered for {limit:g} s (its process is stopped)"
            self._fail_if_silent(peer, how, self._silent_since, limit)

    def _report(self, peer: int, waited: float) -> None:
        """Log once that this rank waits for a busy one, which may never make the call."""
        if (
            self._wait is None
            or self._has_reported
            or waited < self._transport.timeouts.silent
        ):
            return
        self._has_reported = True
        LOGGER.warning(
            f"{self._name()} has waited {waited:.0f} s for {self._name(peer)} in "
            f"{_call(self._wait[1])}, and keeps waiting; all ranks must make this call "
            f"(SPARCML_BUSY_TIMEOUT or timeout= sets a limit)"
        )

    def _fail_if_silent(self, peer: int, how: str, since: float, limit: float) -> None:
        """Raise after the limit: the peer's last messages may still be in flight."""
        if self._wait is not None and self._transport.now() - since > limit:
            call = self._wait[1]
            self.fail(
                TransportError(
                    f"{self._name(peer)} {how}, and {self._name()} still waits for it in {call}"
                )
            )

    @property
    def _look_seconds(self) -> float:
        return min(LOOK_SECONDS, self._transport.timeouts.silent / 4)

    @property
    def _last_seconds(self) -> float:
        return min(LAST_SECONDS, self._transport.timeouts.silent)

    def fail(self, error: SparcmlError) -> NoReturn:
        """Report an error to all peers, then raise it."""
        self.abort(error)
        raise error

    def lose(self, ranks: Sequence[int], how: str) -> TransportError:
        """Report lost ranks to all peers, and return the error.

        Args:
            ranks: The ranks; empty: the one that this rank waits for.
            how: Description of what has become of them.
        """
        assert self._wait is not None
        peer, call = self._wait
        names = " and ".join(self._name(rank) for rank in ranks or [peer])
        if len(ranks) > 1:
            verb, _, rest = how.partition(" ")
            how = f"{PLURALS.get(verb, verb)} {rest}"
        error = TransportError(f"{names} {how}, and {self._name()} still waits in {call}")
        self.abort(error)
        return error

    def abort(self, error: BaseException) -> None:
        """Report an error to all peers; only the first error counts."""
        if self.failure is not None:
            return
        where = self._transport.operation
        text = str(error)
        if not isinstance(error, SparcmlError):
            detail = f"{type(error).__name__}: {text}" if text else type(error).__name__
            where = where if where.startswith("after") else f"in {where}"
            text = f"{self._name()} raised {detail} {where}"
        name = type(error).__name__ if isinstance(error, SparcmlError) else ""
        self.failure = ERRORS.get(name, TransportError)(text)
        self.is_origin = True
        self._send_all(SEPARATOR.join((ABORT, name, text)).encode())

    def leave(self, how: str = ENDED) -> None:
        """Report to all peers that this rank ends, or how it leaves otherwise."""
        self._send_all(SEPARATOR.join((LEFT, how)).encode())

    def has_left(self, peer: int) -> bool:
        """Return whether that peer has reported its end."""
        return peer in self._left

    def all_peers_left(self, *hows: str) -> bool:
        """Return whether every peer has left, in one of the given ways if there are any."""
        self._read()
        left = [how for _, how in self._left.values() if not hows or how in hows]
        return len(left) == self._transport.size - 1

    def time_out(self, poll: Callable[[], bool]) -> None:
        """Find the rank that delays the others, and raise an error that names it.

        Returns only if the wait ends after all.
        """
        transport = self._transport
        self._ask()
        start, limit = transport.now(), min(1.0, max(0.2, transport.timeouts.busy / 10))
        while (waited := transport.now() - start) < limit:
            if poll():
                return
            self.check()
            transport.idle(waited)
        self.fail(self.find_mismatch() or TransportError(self._describe_timeout()))

    def find_mismatch(self) -> MismatchError | None:
        """Return an error if ranks wait in different calls, else None."""
        if self._wait is None:
            return None
        call = _call(self._wait[1])
        number = call.rpartition("#")[2]
        for rank, (_, waiting) in sorted(self._waits.items()):
            other, _, summary = waiting.partition(INPUT)
            other = _call(other)
            # A rank may be some calls ahead, but it must not be in a different one.
            if other != call and other.rpartition("#")[2] == number:
                own_summary = self._transport.input_summary
                return MismatchError(
                    f"{self._name()} waits in {call}{_with(own_summary)}, but "
                    f"{self._name(rank)} waits in {other}{_with(summary)}: all ranks must "
                    f"make the same calls in the same order, with vectors of the same size"
                )
        return None

    def _describe_timeout(self) -> str:
        assert self._wait is not None
        rank, limit = self._transport.rank, self._transport.timeouts.busy
        peer, call = self._wait
        chain = [rank]
        while peer in self._waits and peer not in chain:
            chain.append(peer)
            peer = self._waits[peer][0]
        if peer in chain:
            ring = [*chain[chain.index(peer) :], peer]
            circle = " -> ".join(self._name(rank) for rank in ring)
            return (
                f"ranks wait for each other in a circle ({circle}) after {limit:g} s in "
                f"{call}: check that all ranks make the same calls in the same order"
            )
        waiter = f", awaited by {self._name(chain[-1])}" if len(chain) > 1 else ""
        why = self._transport.processes.state(peer).value
        return (
            f"{self._name(peer)} has not answered for {limit:g} s{waiter} in {call} of "
            f"{self._name(rank)}: it {why} "
            f"(timeout= or SPARCML_BUSY_TIMEOUT sets the limit)"
        )

    def _name(self, rank: int | None = None) -> str:
        """Return the name of a rank (default: this one) by its number in the world."""
        rank = self._transport.rank if rank is None else rank
        return f"rank {self._transport.global_ranks[rank]}"

    def _read(self) -> None:
        for sender, message in self._transport.poll_control():
            letter, *fields = message.decode("utf-8", "replace").split(SEPARATOR)
            if letter == ABORT and self.failure is None:
                self.failure = ERRORS.get(fields[0], TransportError)(fields[1])
            elif letter == LEFT:
                how = fields[0]
                self._left.setdefault(sender, (self._transport.now(), how))
            elif letter == WAITING:
                self._waits[sender] = (int(fields[1]), fields[2])
                if fields[0] == QUESTION and self._wait is not None:
                    self._transport.send_control(sender, self._wait_message(ANSWER))

    def _ask(self) -> None:
        """Ask all ranks what they wait for."""
        self._waits.clear()
        self._send_all(self._wait_message(QUESTION))

    def _wait_message(self, purpose: str) -> bytes:
        assert self.waiting is not None
        peer, call = self.waiting
        return SEPARATOR.join((WAITING, purpose, str(peer), call)).encode()

    def _send_all(self, message: bytes) -> None:
        for peer in range(self._transport.size):
            if peer != self._transport.rank:
                self._transport.send_control(peer, message)


def _call(waiting: str) -> str:
    """Return the call in which, or after which, a rank waits."""
    return waiting.partition(",")[0].removeprefix("after ")


def _with(summary: str) -> str:
    return f" with {summary}" if summary else ""


def abort_message(text: str) -> bytes:
    """Return the control message that ends a rank from outside."""
    return SEPARATOR.join((ABORT, "", text)).encode()
