"""State of a worker of elastic rounds: what all share, and what only this worker has.

All members of a round share a model and its momentum. A worker that was late, is new or was started
again receives them, and keeps what only it has: its change of the model and its residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .state import AGGREGATE, MOMENTUM, SHARED, SIZE, STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .state import State

AGGREGATE_STEP = f"{AGGREGATE}/0/{STEP}"
PREFIX = "worker/"
MODEL, MEMBER, ROUNDS, RUN, EXCHANGED = (
    PREFIX + name for name in ("model", "member", "rounds", "run", "exchanged")
)


@dataclass(frozen=True)
class Snapshot:
    """What the members of a round share after it.

    Attributes:
        run: Number of the run, drawn when all workers were new.
        exchanged: The last round in which each worker exchanged.
        step: Number of completed inner steps.
        aggregate_step: That of the aggregation method; -1 if it has none.
        shared: The shared model.
        momentum: Momentum of the outer optimizer, or None.
    """

    run: int
    exchanged: dict[int, int]
    step: int
    aggregate_step: int
    shared: Values
    momentum: Values | None

    @classmethod
    def of(cls, state: State, run: int, exchanged: dict[int, int]) -> Snapshot:
        """Return the shared part of the state of a member."""
        steps = int(state[STEP]), int(state.get(AGGREGATE_STEP, -1))
        return cls(run, exchanged, *steps, state[SHARED], state.get(MOMENTUM))

    def send(self, comm: Communicator, root: int) -> None:
        """Broadcast it to ranks that call `receive`. Collective."""
        pairs = [number for pair in self.exchanged.items() for number in pair]
        has_momentum = self.momentum is not None
        numbers = [self.run, self.step, self.aggregate_step, has_momentum, *pairs]
        comm.broadcast(np.array(numbers, np.float64), root)
        comm.broadcast(self.shared, root)
        if has_momentum:
            comm.broadcast(self.momentum, root)

    @classmethod
    def receive(cls, comm: Communicator, root: int) -> Snapshot:
        """Return the snapshot of the root. Collective."""
        run, step, aggregate_step, has_momentum, *pairs = (
            int(number) for number in comm.broadcast(None, root)
        )
        exchanged = dict(zip(pairs[::2], pairs[1::2], strict=True))
        shared = np.array(comm.broadcast(None, root))
        momentum = np.array(comm.broadcast(None, root)) if has_momentum else None
        return cls(run, exchanged, step, aggregate_step, shared, momentum)

    def first(self) -> tuple[Values, State]:
        """Return the model and the state of a worker that has nothing of its own."""
        size = np.array(self.shared.size, np.int64)
        return self.shared.copy(), self._with({SIZE: size})

    def moved(self, values: Values, state: State) -> tuple[Values, State]:
        """Return the model and the state of a worker whose round started from another model.

        Its change and its residual are kept.
        """
        if not np.array_equal(state[SHARED], self.shared):
            values = self.shared + (values - state[SHARED])
        return values, self._with(state)

    def _with(self, state: State) -> State:
        new = {**state, SHARED: self.shared, STEP: np.array(self.step, np.int64)}
        new.pop(MOMENTUM, None)
        if self.momentum is not None:
            new[MOMENTUM] = self.momentum
        if self.aggregate_step >= 0:
            new[AGGREGATE_STEP] = np.array(self.aggregate_step, np.int64)
        return new


@dataclass(frozen=True)
class SavedWorker:
    """What a worker has saved.

    Attributes:
        member: Number of the worker.
        rounds: Completed rounds of its shared model.
        run: Number of the run.
        exchanged: The last round in which each worker exchanged.
        model: Its model, flat.
        state: Its state.
    """

    member: int
    rounds: int
    run: int
    exchanged: dict[int, int]
    model: Values
    state: State

    def arrays(self) -> State:
        """Return copies of all of it as arrays by name."""
        pairs = [*self.exchanged.items()]
        return {
            **{key: np.array(value) for key, value in self.state.items()},
            MODEL: np.array(self.model),
            MEMBER: np.array(self.member, np.int64),
            ROUNDS: np.array(self.rounds, np.int64),
            RUN: np.array(self.run, np.int64),
            EXCHANGED: np.array(pairs, np.int64).reshape(-1, 2),
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any], member: int, size: int) -> SavedWorker:
        """Return the result of `arrays`, after checking that it fits the worker and its model."""
        arrays = {key: np.array(saved[key]) for key in saved}
        if not arrays.keys() >= {MODEL, MEMBER, ROUNDS, RUN, EXCHANGED, SHARED, SIZE, STEP}:
            raise ValueError(
                f"resume: saved must be a result of save(), got the keys {sorted(arrays)}; save "
                f"it with np.savez(file, **rounds.save(x, state))"
            )
        for what, own, found in (
            ("worker", member, int(arrays[MEMBER])),
            ("a model of size", size, int(arrays[SIZE])),
        ):
            if own != found:
                raise ValueError(
                    f"resume: saved must be of {what} {own}, got {found}; save one file per worker"
                )
        return cls(
            member,
            int(arrays[ROUNDS]),
            int(arrays[RUN]),
            {int(worker): int(last) for worker, last in arrays[EXCHANGED]},
            arrays[MODEL],
            {k: v for k, v in arrays.items() if not k.startswith(PREFIX)},
        )
