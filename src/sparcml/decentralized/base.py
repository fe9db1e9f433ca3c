"""Base class of decentralized training methods: frozen settings, explicit state, one step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..aggregate.flat_model import check_finite, flatten, flatten_gradient, mean_model
from ..communicator.collective_errors import aborting
from ..registry import Registry
from .checks import check_call, check_rate, check_size, check_state, compare_ranks
from .requirements import require_doubly_stochastic, require_seed, require_topology
from .state import SIZE, STEP, initial_state, keep_entries, mean_state
from .step import Begun, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..aggregate.flat_model import Model
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .state import State
    from .topologies import Topology

METHODS: Registry[type[Method]] = Registry("decentralized method")


@dataclass(frozen=True)
class Method(ABC):
    """Trains with neighbours; every rank has a model of its own.

        state = method.init(x)
        x, state = method.step(comm, x, gradient, state, lr=0.1)

    The model x is an array, or a mapping from names to arrays, of float32 or float64. It belongs
    to the method: change it by `step` alone. A state is a dictionary of arrays that
    `np.savez(file, **state)` writes; with the model it is a checkpoint of the rank, from which
    a run resumes bit for bit.

    Subclasses are frozen dataclasses. One with `name` in its body is registered in `METHODS`.

    Args:
        topology: The neighbours of each rank and the weights of their models.

    Attributes:
        name: Name on the command line and in tables.
        number: Position in `METHODS`.
        keeps_mean: Whether steps without gradients keep the mean of the models exactly, up to
            rounding; if not, the docstring of the method states what is kept.
        is_synchronous: Whether all ranks make the same number of steps.
        checks_values: Whether `_step` checks that the model and the gradient are finite.
        kept_entries: Entries of the state that stay valid if the topology changes.
        averaged_entries: Entries that are averaged if the world size changes.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    keeps_mean: ClassVar[bool] = True
    is_synchronous: ClassVar[bool] = True
    checks_values: ClassVar[bool] = False
    kept_entries: ClassVar[tuple[str, ...]] = ()
    averaged_entries: ClassVar[tuple[str, ...]] = ()

    topology: Topology

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" in cls.__dict__:
            METHODS.register(cls.name, cls.number, cls)

    def __post_init__(self) -> None:
        require_topology(self, self.topology)
        self._check_topology()
        require_seed(self)

    def _check_topology(self) -> None:
        """Raise a ValueError if the theorem of the method excludes the topology."""
        require_doubly_stochastic(self, self.topology)

    def init(self, x: Any, state: State | None = None) -> State:
        """Return the state before the first step.

        Args:
            x: The model of this rank. Ranks may start with different ones.
            state: State of another method, whose step count and common entries are kept.
        """
        return initial_state(flatten("init", x).layout.size, state, self.kept_entries)

    def begin(self, comm: Communicator, x: Any, state: State) -> Begun | None:
        """Start the part of a step that needs no gradient. Collective.

        Call it before the gradient is computed, and pass the result to `step`: then both
        overlap. The model must not change in between. None if the method has no such part.
        """
        model = self._prepare("begin", comm, x, state)
        call = Step(comm, self.topology, int(state[STEP]), model.layout)
        return self._begin(call, model, state)

    def step(
        self,
        comm: Communicator,
        x: Any,
        gradient: Any,
        state: State,
        lr: float,
        *,
        begun: Begun | None = None,
        overwrite_state: bool = False,
    ) -> tuple[Any, State]:
        """Make one step: mix with the neighbours, and apply the gradient. Collective.

        Nothing that is passed is modified, unless `overwrite_state` is set.

        Args:
            comm: The communicator; its size must be that of the topology.
            x: The model of this rank, as the last step returned it.
            gradient: Gradient of this rank's loss at x, of the same form. An update of an
                optimizer is a gradient too, with a learning rate of 1.
            state: State from `init` or from the last step.
            lr: Learning rate.
            begun: Result of `begin`.
            overwrite_state: Whether the arrays of the given state may be reused for the new one,
                which is faster with sparse messages. Do not use the given state again then.

        Returns:
            The new model, in the form of x, and the new state.
        """
        model = self._prepare("step", comm, x, state)
        with aborting(comm):
            rate = check_rate(lr)
            g = flatten_gradient("step", gradient, model.layout)
            if not self.checks_values:
                check_finite(comm.rank, "the gradient", g)
            call = Step(comm, self.topology, int(state[STEP]), model.layout, rate, begun)
            if overwrite_state:
                call = replace(call, reused=tuple(state.values()))
            values, new = self._step(call, model.values, g, state)
        if not values.flags.writeable:
            values = values.copy()
        return model.back(values), {**new, STEP: state[STEP] + 1}

    def flush(self, comm: Communicator, x: Any, state: State) -> tuple[Any, State]:
        """Complete the exchanges in flight. Collective.

        An asynchronous method needs it before a checkpoint; for others it does nothing.
        """
        del comm
        return x, state

    def mean(self, comm: Communicator, x: Any, state: State | None = None) -> Any:
        """Return the mean model of all ranks, for evaluation. Collective.

        `PushSum` and `ADPSGD` need the state of this rank.
        """
        check_call("mean", comm, self.topology)
        model = flatten("mean", x)
        return model.back(self._mean(comm, model.values, state))

    averaged = mean

    def consensus_distance(self, comm: Communicator, x: Any) -> float:
        """Return the root mean square over ranks of ||x - mean of x||. Collective."""
        check_call("consensus_distance", comm, self.topology)
        values = flatten("consensus_distance", x).values
        mean = comm.allreduce(values, op="mean")
        difference = np.subtract(values, mean, dtype=np.float64)
        square = float(np.vdot(difference, difference))
        return math.sqrt(comm.allreduce(square, op="mean"))

    def change_topology(self, topology: Topology, state: State) -> tuple[Self, State]:
        """Return the method on another topology of the same size, and its state.

        All ranks call it between the same steps; nothing is sent. The models and `kept_entries`
        stay. Replicas of neighbours are dropped; the next step sends the models to restore them.
        """
        require_topology(self, topology)
        if topology.size != self.topology.size:
            raise ValueError(
                f"change_topology: topology must have {self.topology.size} ranks, got "
                f"{topology.name}; use reshard to change the world size"
            )
        method = replace(self, topology=topology)
        return method, keep_entries(state, self.kept_entries)

    def consolidate(self, comm: Communicator, x: Any, state: State) -> tuple[Any, State]:
        """Return one model and state for any world size: the mean. Collective.

        Any number of ranks may start from it. `averaged_entries` are averaged, others restart.
        """
        check_call("consolidate", comm, self.topology)
        x, state = self.flush(comm, x, state)
        mean = self.mean(comm, x, state)
        entries = keep_entries(state, self.averaged_entries)
        for key in sorted(entries.keys() - {STEP, SIZE}):
            entries[key] = np.array(comm.allreduce(entries[key], op="mean"))
        return mean, entries

    def reshard(
        self, models: Sequence[Any], states: Sequence[State], topology: Topology
    ) -> tuple[Self, Any, State]:
        """Return method, model and state for another world size, from those of all ranks.

        Like `consolidate`, for checkpoints of the single ranks: new ranks start with the mean.

        Args:
            models: Models of all ranks, in rank order.
            states: Their states.
            topology: Topology of the new size.
        """
        if len(models) != self.topology.size or len(states) != self.topology.size:
            raise ValueError(
                f"reshard: models and states must be those of all {self.topology.size} ranks, "
                f"got {len(models)} and {len(states)}"
            )
        x = mean_model("reshard", models, [self._weight(state) for state in states])
        state = mean_state(states, self.averaged_entries)
        return replace(self, topology=topology), x, state

    @abstractmethod
    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        """Return the new model and the new state, whose step count is ignored."""

    def _begin(self, call: Step, model: Model, state: State) -> Begun | None:
        del call, model, state
        return None

    def _weight(self, state: State) -> float:
        """Return the weight of a rank's model in the mean that is kept."""
        del state
        return 1.0

    def _mean(self, comm: Communicator, values: Values, state: State | None) -> Values:
        del state
        return np.array(comm.allreduce(values, op="mean"))

    def _prepare(self, function: str, comm: Any, x: Any, state: Any) -> Model:
        """Return the flat model, after checks of all arguments on all ranks."""
        check_call(function, comm, self.topology)
        with aborting(comm):
            check_state(function, state)
            model = flatten(function, x)
            check_size(function, model, state)
            if not self.checks_values:
                check_finite(comm.rank, "the model", model.values)
            compare_ranks(function, comm, self, model.layout, state)
        return model
