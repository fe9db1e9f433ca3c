"""The control channel: how ranks learn that a peer has raised, stalled or left.

In most collectives a rank talks to few others, so it would never see that some other
rank has failed. Therefore whoever raises tells everybody, and every wait listens.
A wait that runs out of time first asks around who waits for whom: the rank at the end of
that chain is the one to name, not the innocent neighbour.

Notes are text: a letter for the kind, then fields separated by unit separators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ..errors import MismatchError, SparcmlError, TransportError, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Transport

SEPARATOR, INPUT = "\x1f", "\x1e"
ABORT, WAITING, LEFT = "A", "W", "L"
ASKING, ANSWERING = "?", "!"
LONG = 1.0  # seconds of waiting before the others are asked what they do
KINDS: dict[str, type[SparcmlError]] = {
    kind.__name__: kind for kind in (TransportError, WireError, MismatchError)
}


class Control:
    """One rank's view of how the others are doing."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._mine: tuple[int, str] | None = None  # whom this rank waits for, and in what
        self._asked = False  # whether, in this wait, the others
        self._theirs: dict[int, tuple[int, str]] = {}  # the same of ranks that have said
        self._left: dict[int, float] = {}  # ranks that have ended, and when we heard
        self.failure: SparcmlError | None = None
        self.is_origin = False  # whether this rank was the one to raise

    def begin_wait(self, peer: int, verb: str) -> None:
        """Note down what this rank is about to wait for."""
        self._mine = (peer, f"{self._transport.operation}, {verb}")
        self._asked = False

    def end_wait(self) -> None:
        """The wait ended well."""
        self._mine = None

    @property
    def waiting(self) -> tuple[int, str] | None:
        """Whom this rank waits for, in what, and with which vector."""
        if self._mine is None:
            return None
        peer, doing = self._mine
        return peer, doing + INPUT + self._transport.input_summary

    def record_wait(self, rank: int, waiting: tuple[int, str] | None) -> None:
        """Whom another rank waits for, from one who sees it without asking."""
        if waiting is not None:
            self._theirs[rank] = waiting

    def check(self, waited: float = 0.0) -> None:
        """Read what has arrived; raise if a peer has raised or will never answer.

        Whoever has waited for long asks around, once: ranks that wait for each other in
        different calls need not wait until the time is up.
        """
        self._listen()
        if self.failure is not None:
            raise self.failure
        if waited > LONG and not self._asked:
            self._asked = True
            self._theirs.clear()
            self._tell_all(self._whom_i_wait_for(ASKING))
        elif self._asked and (divergence := self.divergence()) is not None:
            self.fail(divergence)
        if self._mine is None or self._mine[0] not in self._left:
            return
        peer, doing = self._mine
        # Its last messages may still be on their way: give them a moment.
        if self._transport.now() - self._left[peer] > min(1.0, self._transport.timeout):
            self.fail(
                TransportError(
                    f"{self._name(peer)} has ended, and {self._name()} still waits for it "
                    f"in {doing}"
                )
            )

    def fail(self, error: SparcmlError) -> NoReturn:
        """Tell everybody, then raise."""
        self.abort(error)
        raise error

    def abort(self, error: BaseException) -> None:
        """Tell all peers that this rank has raised; only the first time counts."""
        if self.failure is not None:
            return
        where = self._transport.operation
        text = str(error)
        if not isinstance(error, SparcmlError):
            detail = f"{type(error).__name__}: {text}" if text else type(error).__name__
            where = where if where.startswith("after") else f"in {where}"
            text = f"{self._name()} raised {detail} {where}"
        kind = type(error).__name__ if isinstance(error, SparcmlError) else ""
        self.failure = KINDS.get(kind, TransportError)(text)
        self.is_origin = True
        self._tell_all(SEPARATOR.join((ABORT, kind, text)).encode())

    def leave(self) -> None:
        """Tell all peers that this rank ends here."""
        self._tell_all(LEFT.encode())

    def has_left(self, peer: int) -> bool:
        """Whether that peer has said that it ends."""
        return peer in self._left

    def all_peers_left(self) -> bool:
        """Whether every peer has ended."""
        self._listen()
        return len(self._left) == self._transport.size - 1

    def time_out(self, poll: Callable[[], bool]) -> None:
        """The time is up: find out who holds everybody up, and raise in its name.

        Returns only if the wait is over after all.
        """
        transport = self._transport
        assert self._mine is not None
        self._theirs.clear()
        self._tell_all(self._whom_i_wait_for(ASKING))
        start, limit = transport.now(), min(1.0, max(0.2, transport.timeout / 10))
        while (waited := transport.now() - start) < limit:
            if poll():
                return
            self.check()
            transport.idle(waited)
        self.fail(self.divergence() or TransportError(self._verdict()))

    def divergence(self) -> MismatchError | None:
        """Ranks that wait in different calls, if there are such."""
        if self._mine is None:
            return None
        mine = _call(self._mine[1])
        number = mine.rpartition("#")[2]
        for rank, (_, doing) in sorted(self._theirs.items()):
            theirs, _, brought = doing.partition(INPUT)
            theirs = _call(theirs)
            # A rank may rightly be some calls ahead, but not in another one.
            if theirs != mine and theirs.rpartition("#")[2] == number:
                return MismatchError(
                    f"{self._name()} waits in {mine}{_with(self._transport.input_summary)}, but "
                    f"{self._name(rank)} waits in {theirs}{_with(brought)}: all ranks must "
                    f"make the same calls in the same order, with vectors of the same size"
                )
        return None

    def _verdict(self) -> str:
        assert self._mine is not None
        me, limit = self._transport.rank, self._transport.timeout
        peer, doing = self._mine
        chain = [me]
        while peer in self._theirs and peer not in chain:
            chain.append(peer)
            peer = self._theirs[peer][0]
        if peer in chain:
            ring = [*chain[chain.index(peer) :], peer]
            circle = " -> ".join(self._name(rank) for rank in ring)
            return (
                f"ranks wait for each other in a circle ({circle}) after {limit:g} s in "
                f"{doing}: do all ranks make the same calls in the same order?"
            )
        asked = f", asked by {self._name(chain[-1])}" if len(chain) > 1 else ""
        return (
            f"{self._name(peer)} has not answered for {limit:g} s{asked} in {doing} of "
            f"{self._name(me)}: it is stopped, dead, or busy elsewhere "
            f"(SPARCML_TIMEOUT or timeout= sets the limit)"
        )

    def _name(self, rank: int | None = None) -> str:
        """What to call a rank (this one by default): by its number in the world."""
        which = self._transport.rank if rank is None else rank
        return f"rank {self._transport.global_ranks[which]}"

    def _listen(self) -> None:
        for sender, note in self._transport.poll_control():
            kind, *fields = note.decode("utf-8", "replace").split(SEPARATOR)
            if kind == ABORT and self.failure is None:
                self.failure = KINDS.get(fields[0], TransportError)(fields[1])
            elif kind == LEFT:
                self._left.setdefault(sender, self._transport.now())
            elif kind == WAITING:
                self._theirs[sender] = (int(fields[1]), fields[2])
                if fields[0] == ASKING and self._mine is not None:
                    self._transport.send_control(sender, self._whom_i_wait_for(ANSWERING))

    def _whom_i_wait_for(self, why: str) -> bytes:
        assert self.waiting is not None
        peer, doing = self.waiting
        return SEPARATOR.join((WAITING, why, str(peer), doing)).encode()

    def _tell_all(self, note: bytes) -> None:
        for peer in range(self._transport.size):
            if peer != self._transport.rank:
                self._transport.send_control(peer, note)


def _call(doing: str) -> str:
    """The call in which, or after which, a rank waits."""
    return doing.partition(",")[0].removeprefix("after ")


def _with(vector: str) -> str:
    return f" with {vector}" if vector else ""


def abort_message(text: str) -> bytes:
    """What a rank hears when something outside ends the job."""
    return SEPARATOR.join((ABORT, "", text)).encode()
