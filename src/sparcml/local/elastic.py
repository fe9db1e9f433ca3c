"""Rounds of a changing group of workers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregate.flat_model import flatten
from ..errors import SparcmlError
from ..startup import from_store
from .quorum import JOINING
from .state import AGGREGATE, MOMENTUM, SHARED, STEP

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from .quorum import Meeting, Quorum
    from .round import Round
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
    the shared model. All members of a round end with the same bits. What a dead worker has
    not sent dies with it.

    Processes meet in a store of torch.distributed. Ranks of MPI cannot: the job ends with the first
    rank that dies. Start it again from a consolidated state.

    Args:
        method: A method of rounds, with one fragment and no delay.
        quorum: Decides who takes part.
        timeout: Seconds to wait for a member in an exchange. Default: the grace period.
    """

    def __init__(self, method: Round, quorum: Quorum, timeout: float | None = None) -> None:
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

    def close(self) -> None:
        """Close the connections."""
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
            with contextlib.suppress(SparcmlError):  # a member has died: without it again
                result = self._exchange(meeting, x, state)
            counts = self.quorum.commit(meeting, result is not None)
            if counts and result is not None:
                self.rounds, self._last = meeting.newest + 1, meeting.number
                return result
            self.close()

    def _exchange(self, meeting: Meeting, x: Any, state: State) -> tuple[Any, State]:
        comm = self._open(meeting)
        rounds, newest = meeting.rounds, meeting.newest
        root = next(i for i, r in enumerate(rounds.values()) if r == newest)
        if newest == JOINING:  # all are new
            model = flatten("join", x)
            x = model.back(np.array(comm.broadcast(model.values, root)))
            return x, self.method.init(x)
        if min(rounds.values()) == newest:
            return self.method.step(comm, x, state)
        is_current = rounds[self.quorum.member] == newest
        with comm.split(int(is_current)) as current:
            after = self.method.step(current, x, state) if is_current else (x, state)
        return self._receive(comm, root, *after, is_current=is_current)

    def _receive(
        self, comm: Communicator, root: int, x: Any, state: State, *, is_current: bool
    ) -> tuple[Any, State]:
        """Send the shared model to the members that are late or new. Collective."""
        numbers = [
            STEP,
            *sorted(k for k in state if k.startswith(AGGREGATE) and k.endswith(STEP)),
        ]
        count = int(comm.broadcast(len(numbers), root))
        values = [
            int(comm.broadcast(int(state[numbers[i]]) if comm.rank == root else 0, root))
            for i in range(count)
        ]
        has_momentum = bool(comm.broadcast(MOMENTUM in state, root))
        shared = np.array(comm.broadcast(state[SHARED], root))
        own = state.get(MOMENTUM, np.zeros_like(shared))
        momentum = np.array(comm.broadcast(own, root)) if has_momentum else None
        if is_current:
            return x, state
        model = flatten("step", x)
        late = shared + (model.values - state[SHARED]) if self.rounds > JOINING else shared
        new = {**state, SHARED: shared, STEP: np.array(values[0], np.int64)}
        if momentum is not None:
            new[MOMENTUM] = momentum
        for value in values[1:]:
            new[f"{AGGREGATE}/0/{STEP}"] = np.array(value, np.int64)
        return model.back(late), new

    def _open(self, meeting: Meeting) -> Communicator:
        """Return a communicator of the members; that of the last round if they are the same.

        All members decide alike: if the last meeting counted and had these members, each of them
        was there.
        """
        is_same = meeting.members == self._members and meeting.number == self._last + 1
        if self._comm is None or not is_same:
            self.close()
            from torch.distributed import PrefixStore

            store = PrefixStore(f"group {meeting.number}", self.quorum.store)
            rank = meeting.members.index(self.quorum.member)
            self._comm = from_store(store, rank, len(meeting.members), timeout=self.timeout)
            self._members = meeting.members
        return self._comm


def _sent(comm: Communicator) -> int:
    return int(comm.stats.bytes + comm.stats.native_bytes)
