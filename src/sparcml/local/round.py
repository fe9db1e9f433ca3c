"""The round as one engine: H silent steps, an exchange of the change, an outer step."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..aggregate.state import RESIDUAL, consolidate
from ..validation import check_integer
from .base import Method
from .checks import check_fraction, compare_ranks, refuse_residual
from .fragments import as_names, joined_residual, split_model
from .outer import mixed
from .state import (
    CARRIED,
    FINISHED,
    MOMENTUM,
    PENDING,
    SHARED,
    STEP,
    aggregate_state,
    residual_keys,
    with_aggregate_state,
)
from .streaming import merged_at, sent_at

if TYPE_CHECKING:
    from ..aggregate.flat_model import Layout, Model
    from ..communicator.communicator import Communicator
    from ..communicator.requests import Request
    from ..stream.arrays import Values
    from .base import Call
    from .fragments import Fragment, Names
    from .outer import Outer
    from .state import State


@dataclass
class InFlight:
    """The exchange in flight of a communicator.

    Attributes:
        request: Its request, or None.
        pending: The change that is sent: `pending` of the state that it belongs to.
    """

    request: Request | None = None
    pending: Values | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Round(Method):
    """Rounds of inner steps, each of which ends with an exchange of the model's change.

        D_m = shared - x_m                     on rank m, after `sync_every` inner steps
        D = mean of D_m                        by any aggregation method
        shared <- Outer(shared, D)             the outer optimizer; the same bits on all ranks
        x_m <- shared

    D is start minus end, so it acts as a gradient. It is applied to the shared model, never to
    the model of a rank. Optimizer states of the inner steps stay local.

    With several fragments the model is exchanged part by part, each once per round. With a
    delay a part is sent that many steps before it is merged, and computation continues:

        x_m <- mix x_m + (1 - mix) shared

    State: `shared`, `momentum`, `pending`, and that of the aggregation method by fragment.

    Args:
        sync_every: Inner steps per round, H.
        fragments: Number of fragments, which must divide H, or their parameters by name.
        delay: Steps between sending and merging a fragment, below H / fragments.
        mix: Weight of the rank's own model in a merge. 0 replaces it.
    """

    sync_every: int = 30
    fragments: int | Names = field(default=1, kw_only=True)
    delay: int = field(default=0, kw_only=True)
    mix: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_integer(self, "sync_every", minimum=1)
        if not isinstance(self.fragments, (list, tuple)):
            check_integer(self, "fragments", minimum=1)
        else:
            object.__setattr__(self, "fragments", as_names(name, self.fragments))
        check_integer(self, "delay", minimum=0)
        check_fraction(self, "mix", below_one=False)
        if not self.parts or self.sync_every % self.parts:
            raise ValueError(
                f"{name}: fragments must divide sync_every, {self.sync_every}, got "
                f"{self.parts}; use one of {_divisors(self.sync_every)}"
            )
        if self.delay >= self.sync_every // self.parts:
            raise ValueError(
                f"{name}: delay must be below sync_every / fragments, "
                f"{self.sync_every // self.parts}, got {self.delay}; only one fragment may be in "
                f"flight, so reduce the delay or the number of fragments"
            )

    @property
    def parts(self) -> int:
        """Number of fragments."""
        return self.fragments if isinstance(self.fragments, int) else len(self.fragments)

    @property
    @abstractmethod
    def outer(self) -> Outer:
        """The outer optimizer."""

    def exchanges(self, number: int) -> bool:
        """Return whether a fragment is sent or merged after this step."""
        return self._sent(number) is not None or self._merged(number) is not None

    def merges(self, number: int) -> bool:
        """Return whether a fragment is merged after this step."""
        return self._merged(number) is not None

    def ends_round(self, number: int) -> bool:
        """Return whether the last fragment is merged after this step."""
        return self._merged(number) == self.parts - 1

    def _sent(self, number: int) -> int | None:
        return sent_at(number, self.sync_every, self.parts, self.delay)

    def _merged(self, number: int) -> int | None:
        return merged_at(number, self.sync_every, self.parts)

    def _split(self, layout: Layout) -> list[Fragment]:
        return split_model(type(self).__name__, layout, self.fragments)

    def _outer_of(self, call: Call) -> Outer:
        outer = self.outer
        return outer if call.outer_lr is None else replace(outer, lr=call.outer_lr)

    def _begin(self, model: Model) -> State:
        self._split(model.layout)  # raises here if it is impossible
        return {SHARED: np.array(model.values)}

    @property
    def _has_momentum(self) -> bool:
        return self.outer.momentum > 0

    def _carry(self, model: Model, state: State) -> State:
        if SHARED not in state:
            return {}
        dtype = model.values.dtype
        new: State = {
            SHARED: np.array(state[SHARED], dtype),
            CARRIED: np.array(state[STEP]),
        }
        if MOMENTUM in state and self._has_momentum:
            new[MOMENTUM] = np.array(state[MOMENTUM], dtype)
        if FINISHED in state:
            new[FINISHED] = state[FINISHED]
        left = dict(state)
        for index, part in enumerate(self._split(model.layout)):
            entries = aggregate_state(state, index)
            residual = joined_residual(part, entries, dtype)
            lost = residual is None and residual_keys(with_aggregate_state({}, 0, entries))
            if not lost:
                left = with_aggregate_state(left, index, {})
                entries = self._carried(part, residual, entries)
                new = with_aggregate_state(new, index, entries)
        refuse_residual(self, left, f" of other fragments than its {self.parts}")
        return new

    def _carried(self, part: Fragment, residual: Values | None, entries: State) -> State:
        """Return the state of the aggregation of a fragment, from that of another method.

        Args:
            part: The fragment.
            residual: Its residual, if there is one that is not zero.
            entries: State of the aggregation of the other method.
        """
        del part, entries
        return {} if residual is None else {RESIDUAL: residual}

    def _just_merged(self, number: int, state: State) -> int | None:
        """Return the fragment that has not changed since it was merged after this step."""
        return None if int(state.get(CARRIED, -1)) == number else self._merged(number)

    def _step(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        fragments = self._split(call.layout)
        new = dict(state)
        sent, merged = self._sent(call.number), self._merged(call.number)
        if sent is not None:
            part = fragments[sent]
            new[PENDING] = part.difference(state[SHARED], x)
            if self.delay:
                self._start(call, part, sent, new)
        if merged is not None and PENDING in new:
            x, new = self._merge(call, x, fragments[merged], merged, new)
        return x, new

    def _finish(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        if int(state.get(FINISHED, -1)) == call.number:
            return state[SHARED].copy(), state
        fragments = self._split(call.layout)
        new: State = {**state, FINISHED: np.array(call.number, np.int64)}
        if PENDING in state:
            flying = next(n for n in itertools.count(call.number + 1) if self.merges(n))
            index = self._merged(flying)
            assert index is not None, "an exchange in flight that is never merged"
            x, new = self._merge(call, x, fragments[index], index, new)
        merged = self._just_merged(call.number, state)
        if self.parts == 1 and (not call.number or merged is not None):
            return new[SHARED].copy(), new
        for index, part in enumerate(fragments):
            if index == merged:
                continue  # no step has changed it since: only momentum would move it
            new[PENDING] = part.difference(new[SHARED], x)
            x, new = self._merge(call, x, part, index, new)
        return new[SHARED].copy(), new

    def _start(self, call: Call, part: Fragment, index: int, state: State) -> None:
        """Start the exchange of the pending change in the background."""
        flight = call.comm.cache.get(InFlight)
        self._drain(flight)
        flight.pending = state[PENDING]
        work = partial(self._exchange, call, part, index, state)
        flight.request = call.comm.start("local exchange", state[PENDING], work)

    def _merge(
        self, call: Call, x: Values, part: Fragment, index: int, state: State
    ) -> tuple[Values, State]:
        """Apply the mean change to the shared model and to x. Collective."""
        flight = call.comm.cache.get(InFlight)
        if flight.request is not None and flight.pending is state[PENDING]:
            request, flight.request, flight.pending = flight.request, None, None
            change, entries = request.wait()
        else:  # there is no delay, or the state was loaded
            self._drain(flight)
            change, entries = self._exchange(call, part, index, state, call.comm)
        shared, momentum = state[SHARED], state.get(MOMENTUM)
        old = None if momentum is None else part.read(momentum)
        own = part.read(x)
        values, buffer = self._apply(call, part.read(shared), old, change)
        alone = call.comm.size == 1 and not self.delay
        if alone and self._is_average(call) and not residual_keys(state):
            values = own.copy()  # exactly, although start - (start - end) is rounded
        new = with_aggregate_state(state, index, entries)
        del new[PENDING]
        new[SHARED] = part.replaced(shared, values)
        if buffer is not None:
            momentum = np.zeros_like(shared) if momentum is None else momentum
            new[MOMENTUM] = part.replaced(momentum, buffer)
        return part.replaced(x, mixed(self.mix, own, values)), new

    def _apply(
        self, call: Call, shared: Values, momentum: Values | None, change: Values
    ) -> tuple[Values, Values | None]:
        """Return the new values of a fragment of the shared model, and its momentum."""
        return self._outer_of(call).step(shared, momentum, change)

    def _is_average(self, call: Call) -> bool:
        """Return whether a round of a single rank changes nothing."""
        del call
        return False

    def _exchange(
        self, call: Call, part: Fragment, index: int, state: State, comm: Communicator
    ) -> tuple[Values, State]:
        """Return the mean change and the new state of its aggregation. Collective."""
        compare_ranks("step", comm, self, call.layout, call.number, state[SHARED])
        return self._aggregate(comm, part, state[PENDING], aggregate_state(state, index))

    @abstractmethod
    def _aggregate(
        self, comm: Communicator, part: Fragment, change: Values, state: State
    ) -> tuple[Values, State]:
        """Return the mean of the changes of all ranks, and the new state. Collective."""

    def _drain(self, flight: InFlight) -> None:
        """Complete an exchange whose state was replaced by a loaded one."""
        request, flight.request, flight.pending = flight.request, None, None
        if request is not None:
            request.wait()

    def _consolidate(self, comm: Communicator, state: State) -> State:
        new = dict(state)
        if PENDING in state:
            new[PENDING] = np.array(comm.allreduce(state[PENDING], op="mean"))
        for index in range(self.parts):
            entries = aggregate_state(state, index)
            if entries:
                new = with_aggregate_state(new, index, self._mean_state(comm, entries))
        return new

    def _mean_state(self, comm: Communicator, entries: State) -> State:
        return consolidate(comm, entries)


def _divisors(number: int) -> str:
    return ", ".join(str(d) for d in range(1, number + 1) if number % d == 0)
