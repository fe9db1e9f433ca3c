"""Rounds of a changing group of workers."""

from __future__ import annotations

import contextlib
import secrets
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregate.flat_model import flatten
from ..errors import MismatchError, SparcmlError
from ..startup import from_store
from .elastic_state import SavedWorker, Snapshot
from .quorum import JOINING
from .round import Round
from .state import STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .quorum import Meeting, Quorum
    from .state import State


class ElasticRounds:
    """Rounds that need a quorum of workers, and not all of them.

        rounds = ElasticRounds(local.DiLoCo(30), Quorum(store, member, workers=4, minimum=2))
        x, state = rounds.join(x)
        x = x - lr * gradient(x)
        x, state = rounds.step(x, state)        # after each inner step

    Workers may die, be late or join. A round is completed by those that come to its end within the
    grace period; if one of them dies in the exchange, the others repeat it. A worker that is late
    keeps its change: it continues from the new shared model with its change applied, and so
    contributes in the next round. A worker that joins waits for the end of a round and receives
    the shared model. All members of a round end with the same bits.

    What a dead worker has not sent dies with it, unless it has saved it:

        np.savez(file, **rounds.save(x, state))             # after each round
        x, state = rounds.resume(x, state, np.load(file))   # after join, in a new process

    It then continues like a worker that was late. If all workers have started again, they
    continue from the newest shared model among their states.

    Processes meet in a store of torch.distributed. Ranks of MPI cannot: the job ends with the first
    rank that dies. Start it again from a consolidated state.

    Args:
        method: A method of rounds, with one fragment and no delay.
        quorum: Decides who takes part.
        timeout: Seconds to wait for a member in an exchange. Default: the grace period.

    Raises:
        MismatchError: If workers have different settings or models.
    """

    def __init__(self, method: Round, quorum: Quorum, timeout: float | None = None) -> None:
        if not isinstance(method, Round):
            raise TypeError(
                f"ElasticRounds: method must be a method of rounds such as "
                f"sparcml.local.DiLoCo(30), got {method!r}"
            )
        if method.parts > 1 or method.delay:
            raise ValueError(
                f"ElasticRounds: method must have rounds of one fragment without delay, got "
                f"{method}; set fragments=1 and delay=0"
            )
        self.method, self.quorum = method, quorum
        self.timeout = quorum.grace if timeout is None else timeout
        self.rounds = JOINING
        self._comm: Communicator | None = None
        self._members: tuple[int, ...] = ()
        self._last = 0  # number of the last meeting that counted
        self._run = 0  # of the shared model: drawn when all workers were new, or resumed
        self._exchanged: dict[int, int] = {}  # last round in which each worker exchanged
        self._sent = 0  # bytes of closed groups

    @property
    def bytes_sent(self) -> int:
        """Bytes that this worker has sent, in all groups."""
        return self._sent + (0 if self._comm is None else _sent(self._comm))

    @property
    def members(self) -> tuple[int, ...]:
        """Members of the last round."""
        return self._members

    def join(self, x: Any) -> tuple[Any, State]:
        """Return the shared model and the first state; waits for the others.

        At the start it is the model of the worker with the lowest number.
        """
        return self._complete(x, self.method.init(x))

    def step(self, x: Any, state: State) -> tuple[Any, State]:
        """Complete an inner step, and the round if it is its last. Nothing is modified."""
        if not self.method.exchanges(int(state[STEP]) + 1):
            return x, {**state, STEP: state[STEP] + 1}
        return self._complete(x, state)

    def save(self, x: Any, state: State) -> State:
        """Return what a new process of this worker continues from, for `np.savez`."""
        member, values = self.quorum.member, flatten("save", x).values
        saved = SavedWorker(member, self.rounds, self._run, self._exchanged, values, state)
        return saved.arrays()

    def resume(self, x: Any, state: State, saved: Mapping[str, Any]) -> tuple[Any, State]:
        """Continue from a result of `save` of the same worker, after `join`.

        If the others have continued meanwhile, the worker keeps the current shared model, and
        adds its saved change and residual. These are dropped with a warning if the worker has
        exchanged since, as they would count twice, or if the others continue another run.

        Args:
            x: The model from `join`.
            state: The state from `join`.
            saved: The saved arrays.

        Raises:
            ValueError: If they are of another worker or model.
        """
        model = flatten("resume", x)
        old = SavedWorker.read(saved, self.quorum.member, model.layout.size)
        have_all_restarted = self.rounds == 0  # without a round since then
        if old.run != self._run and have_all_restarted and old.rounds:
            self.rounds, self._exchanged = old.rounds, dict(old.exchanged)
            self._run = old.run
            return model.back(old.model), old.state
        now = Snapshot.of(state, self._run, self._exchanged)
        if old.run != self._run and not have_all_restarted:
            warnings.warn(
                f"ElasticRounds: saved state of worker {self.quorum.member} must be of the run "
                f"that the others continue, got that of another run; its change and residual are "
                f"dropped. Start all workers from their states",
                RuntimeWarning,
                stacklevel=2,
            )
            return x, state
        values, new = self._catch_up(now, old.rounds, old.model, old.state)
        return model.back(values), new

    def close(self) -> None:
        """Close the connections, and report that this worker has ended."""
        self._disconnect()
        with contextlib.suppress(RuntimeError):  # the store may have ended
            self.quorum.leave()

    def _disconnect(self) -> None:
        comm, self._comm = self._comm, None
        if comm is not None:
            self._sent += _sent(comm)
            with contextlib.suppress(SparcmlError):  # a member may be dead
                comm.close()

    def _complete(self, x: Any, state: State) -> tuple[Any, State]:
        """Meet and exchange until a round counts."""
        while True:
            meeting = self.quorum.meet(self.rounds)
            result = None
            try:
                result = self._exchange(meeting, x, state)
            except MismatchError as error:  # it would be raised in every attempt
                self.quorum.refuse(meeting, str(error))
            except SparcmlError:  # a member has died: without it again
                pass
            counts = self.quorum.commit(meeting, result is not None)
            if counts and result is not None:
                self._count(meeting)
                return result
            self._disconnect()
            if text := self.quorum.refusal(meeting):
                raise MismatchError(text)

    def _count(self, meeting: Meeting) -> None:
        self.rounds, self._last = meeting.newest + 1, meeting.number
        if meeting.newest > JOINING:
            current = [m for m, r in meeting.rounds.items() if r == meeting.newest]
            self._exchanged |= dict.fromkeys(current, self.rounds)

    def _exchange(self, meeting: Meeting, x: Any, state: State) -> tuple[Any, State]:
        comm = self._open(meeting)
        rounds, newest = meeting.rounds, meeting.newest
        root = next(i for i, r in enumerate(rounds.values()) if r == newest)
        if newest == JOINING:  # all are new
            model = flatten("join", x)
            x = model.back(np.array(comm.broadcast(model.values, root)))
            self._run, self._exchanged = int(comm.broadcast(secrets.randbits(48), root)), {}
            return x, self.method.init(x)
        if min(rounds.values()) == newest:
            return self.method.step(comm, x, state)
        is_current = rounds[self.quorum.member] == newest
        with comm.split(int(is_current)) as current:
            if is_current:
                x, state = self.method.step(current, x, state)
        if comm.rank == root:
            Snapshot.of(state, self._run, self._exchanged).send(comm, root)
            return x, state
        now = Snapshot.receive(comm, root)
        if is_current:
            return x, state
        # After a start of all workers, those without a saved state are of a run of their own.
        rounds_of_run = self.rounds if self._run == now.run else JOINING
        self._run, self._exchanged = now.run, dict(now.exchanged)
        model = flatten("step", x)
        values, new = self._catch_up(now, rounds_of_run, model.values, state)
        return model.back(values), new

    def _catch_up(
        self, now: Snapshot, rounds: int, values: Values, state: State
    ) -> tuple[Values, State]:
        """Return model and state of this worker on the current shared model.

        Args:
            now: What the members share.
            rounds: Completed rounds of this worker's own shared model.
            values: Its model, flat.
            state: Its state.
        """
        if rounds == JOINING:
            return now.first()
        last = now.exchanged.get(self.quorum.member, 0)
        if last > rounds:
            warnings.warn(
                f"ElasticRounds: saved state of worker {self.quorum.member} must be of round "
                f"{last}, in which it exchanged last, got round {rounds}; its change and residual "
                f"are dropped, since they were sent in part. Save after every round",
                RuntimeWarning,
                stacklevel=2,
            )
            return now.first()
        return now.moved(values, state)

    def _open(self, meeting: Meeting) -> Communicator:
        """Return a communicator of the members; that of the last round if they are the same.

        All members decide alike: if the last meeting counted and had these members, each of them
        was there.
        """
        is_same = meeting.members == self._members and meeting.number == self._last + 1
        if self._comm is None or not is_same:
            self._disconnect()
            from torch.distributed import PrefixStore

            store = PrefixStore(f"group {meeting.number}", self.quorum.store)
            rank = meeting.members.index(self.quorum.member)
            self._comm = from_store(store, rank, len(meeting.members), timeout=self.timeout)
            self._members = meeting.members
        return self._comm


def _sent(comm: Communicator) -> int:
    return int(comm.stats.bytes)
