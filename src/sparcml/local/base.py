"""Base class of local training methods: frozen settings, explicit state, one call per step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..aggregate.flat_model import flatten
from ..communicator.collective_errors import aborting
from ..registry import Registry, short_repr
from .checks import check_call, check_model, compare_ranks, refuse_residual
from .state import SHARED, STEP, initial_state

if TYPE_CHECKING:
    from ..aggregate.flat_model import Layout, Model
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .state import State

METHODS: Registry[type[Method]] = Registry("local method")


@dataclass(frozen=True)
class Call:
    """One step on one rank.

    Attributes:
        comm: The communicator.
        layout: Parameters of the model.
        number: Number of completed inner steps, including this one.
        outer_lr: Outer learning rate of this step; None is that of the method.
    """

    comm: Communicator
    layout: Layout
    number: int
    outer_lr: float | None = None


@dataclass(frozen=True)
class Method(ABC):
    """Trains on each rank separately, and exchanges the models or their change now and then.

        state = method.init(x)
        x = x - lr * gradient(x)                      # any optimizer
        x, state = method.step(comm, x, state)        # after each step of it

    The model x is an array, or a mapping from names to arrays, of float32 or float64; all ranks
    start from the same. A state is a dictionary of arrays that `np.savez(file, **state)` writes;
    with the model it is a checkpoint of the rank, from which a run resumes bit for bit at any
    step. `consolidate` gives one checkpoint for any world size.

    Subclasses are frozen dataclasses. One with `name` in its body is registered in `METHODS`.

    Attributes:
        name: Name on the command line and in tables.
        number: Position in `METHODS`.
    """

    name: ClassVar[str]
    number: ClassVar[int]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" in cls.__dict__:
            METHODS.register(cls.name, cls.number, cls)

    def __str__(self) -> str:
        return short_repr(self)

    def init(self, x: Any, state: State | None = None) -> State:
        """Return the state before the first step.

        Args:
            x: The model, the same on all ranks unless a state with a shared model is given.
            state: State of another method to continue from. Its step count is kept. If it has a
                shared model, that is kept with the residuals, so that no change of a rank is
                lost: what changed since the last exchange, also what is in flight, is in the next
                one. The outer momentum is kept if this method has one, and dropped otherwise.

        Raises:
            ValueError: If the state has a residual that this method cannot keep, because it has
                no residual or other fragments.
        """
        model = flatten("init", x)
        new = {**initial_state(model.layout.size, state), **self._begin(model)}
        return new if state is None else {**new, **self._carry(model, state)}

    def step(
        self, comm: Communicator, x: Any, state: State, *, outer_lr: float | None = None
    ) -> tuple[Any, State]:
        """Complete an inner step, and exchange if it is the last of a round. Collective.

        Nothing that is passed is modified.

        Args:
            comm: The communicator.
            x: The model of this rank after the step of its optimizer.
            state: State from `init` or from the last step.
            outer_lr: Outer learning rate of this round, for a schedule. Default: that of the
                method.

        Returns:
            The new model, in the form of x, and the new state.
        """
        check_call("step", comm, state)
        number = int(state[STEP]) + 1
        if not self.exchanges(number):
            return x, {**state, STEP: state[STEP] + 1}
        with aborting(comm):
            model = flatten("step", x)
            check_model("step", comm.rank, model, state)
            values, new = self._step(
                Call(comm, model.layout, number, outer_lr), model.values, state
            )
        return model.back(values), {**new, STEP: state[STEP] + 1}

    def shared(self, x: Any, state: State) -> Any:
        """Return the model at the start of the round, the same bits on all ranks.

        Evaluate this one: a rank's own model has drifted from the others.

        Args:
            x: The model of this rank, for its form.
            state: The state.
        """
        if SHARED not in state:
            raise ValueError(
                f"shared: state must have a shared model, got one of {type(self).__name__}, which "
                f"has none; use averaged(comm, x)"
            )
        return flatten("shared", x).back(state[SHARED].copy())

    def averaged(self, comm: Communicator, x: Any) -> Any:
        """Return the mean of the models of all ranks. Collective."""
        model = flatten("averaged", x)
        return model.back(np.array(comm.allreduce(model.values, op="mean")))

    def finish(self, comm: Communicator, x: Any, state: State) -> tuple[Any, State]:
        """Complete the round early, so that all ranks have the same model. Collective.

        Call it at the end of training. It changes nothing if the last step has ended a round.
        """
        check_call("finish", comm, state)
        with aborting(comm):
            model = flatten("finish", x)
            check_model("finish", comm.rank, model, state)
            step, shared = int(state[STEP]), state.get(SHARED)
            compare_ranks("finish", comm, self, model.layout, step, shared)
            call = Call(comm, model.layout, step)
            values, new = self._finish(call, model.values, state)
        return model.back(values), {**new, STEP: state[STEP]}

    def consolidate(self, comm: Communicator, x: Any, state: State) -> tuple[Any, State]:
        """Return one model and state for any world size. Collective.

        All ranks get the same. Save it on one rank, and start any number of ranks from it. The
        steps since the last exchange are kept: the model is the mean over ranks, so that the
        mean change of the round is the same as without the interruption. Residuals and the
        change in flight are averaged too.
        """
        check_call("consolidate", comm, state)
        model = flatten("consolidate", x)
        step, shared = int(state[STEP]), state.get(SHARED)
        compare_ranks("consolidate", comm, self, model.layout, step, shared)
        return self.averaged(comm, x), self._consolidate(comm, state)

    @abstractmethod
    def exchanges(self, number: int) -> bool:
        """Return whether anything is sent or received in this step; the first is step 1."""

    def merges(self, number: int) -> bool:
        """Return whether this step changes the model."""
        return self.exchanges(number)

    def ends_round(self, number: int) -> bool:
        """Return whether this step is the last of a round."""
        return self.exchanges(number)

    @abstractmethod
    def _begin(self, model: Model) -> State:
        """Return the first entries of the state."""

    def _carry(self, model: Model, state: State) -> State:
        """Return the entries that are taken over from a state of another method."""
        del model
        refuse_residual(self, state)
        return {}

    @abstractmethod
    def _step(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        """Return the new model and the new state, whose step count is ignored."""

    @abstractmethod
    def _finish(self, call: Call, x: Values, state: State) -> tuple[Values, State]:
        """Return the model that all ranks share, and the new state. Collective."""

    def _consolidate(self, comm: Communicator, state: State) -> State:
        """Return one state for any world size. Collective."""
        del comm
        return dict(state)
