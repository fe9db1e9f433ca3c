"""Base class of aggregation methods: frozen settings, explicit state, one step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..communicator.collective_errors import aborting
from ..communicator.communicator import Communicator
from ..planning.candidates import Planning, Reduction, planned_algorithms
from ..registry import Registry, short_repr
from .checks import check_state, compare_ranks, refuse_nonfinite
from .gradients import describe, opened, shapes_of
from .state import RESIDUAL, STEP, initial_state, keys_of, name_of, residual_rates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..stream.arrays import Values
    from .gradients import Parameter, Shape
    from .state import State

NANO = 1e-9
NONFINITE = ("raise", "propagate")

METHODS: Registry[type[Method]] = Registry("aggregation method")


class Method(ABC):
    """Averages the gradients of all ranks; subclasses are frozen dataclasses.

    A subclass with `name` in its body is registered in `METHODS`.

    Attributes:
        name: Name on the command line and in tables.
        number: Position in `METHODS`.
        option: Placeholder for what follows the colon on the command line ("RATIO"); empty
            if the method has no option.
        carried_state: Entries of a state, besides the residual, that `init` takes over from
            another state, such as "momentum".
        is_exact: Whether the result is the exact mean, which any dense allreduce computes.
        returns_mean: Whether the result is (an estimate of) the mean gradient.
        returns_update: Whether the result is an update that contains the learning rate, to be
            subtracted from the weights, and not a gradient for an optimizer.
        planning_cost: Nanoseconds per value of a step on one core, without the allreduce.
        nonfinite: Treatment of NaN and infinity in a gradient: "raise" stops all ranks with
            an error that names the rank and the parameter, "propagate" keeps them, so that
            they appear in the mean.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    option: ClassVar[str] = ""
    carried_state: ClassVar[tuple[str, ...]] = ()
    is_exact: ClassVar[bool] = False
    returns_mean: ClassVar[bool] = True
    returns_update: ClassVar[bool] = False
    planning_cost: ClassVar[float] = 0.0
    nonfinite: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            METHODS.register(cls.name, cls.number, cls)

    def __str__(self) -> str:
        return short_repr(self)

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Return a method from the option of a command line specification.

        Args:
            text: The part after the colon of `name:option`; empty if there is none.

        Raises:
            ValueError: If the option is invalid.
        """
        if text:
            raise ValueError(f"{cls.name}: option must be empty, got {text!r}")
        return cls()

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(),)

    @classmethod
    def planned(cls) -> tuple[Method, ...]:
        """Return the instances that get rows in a plan."""
        return ()

    def planning(self, shapes: Sequence[Shape]) -> Planning:
        """Describe the method to the planner; by default it sends all values once.

        Args:
            shapes: Shapes of the model's parameters.
        """
        size = sum(map(math.prod, shapes))
        return Planning(
            type(self).__name__,
            planned_algorithms(),
            NANO * self.planning_cost,
            (Reduction(size, size),),
        )

    def compresses_shape(self, name: str, shape: Shape) -> bool:
        """Return whether dense gradients of this name and shape are compressed."""
        del name, shape
        return not self.is_exact

    def for_gradients(self) -> Method:
        """Return the method that averages gradients where an optimizer makes the step."""
        return self

    def describe(self, state: State) -> dict[str, float]:
        """Return the ratio or the bits chosen for each parameter; empty for most methods."""
        del state
        return {}

    def with_algorithm(self, algorithm: str) -> Method:
        """Return the method with an allreduce algorithm, if it has that setting."""
        del algorithm
        return self

    @property
    def keeps_residual(self) -> bool:
        """Whether a residual in the state reaches the mean, in this step or a later one."""
        return True

    def __post_init__(self) -> None:
        if self.nonfinite not in NONFINITE:
            raise ValueError(
                f"{type(self).__name__}: nonfinite must be {' or '.join(NONFINITE)}, "
                f"got {self.nonfinite!r}"
            )

    def init(self, sizes: Any, state: State | None = None) -> State:
        """Return the state before the first step.

        Args:
            sizes: A size, a shape, or a mapping from names to shapes, as the gradients will
                have. An array stands for its shape.
            state: State of another method to continue from. Its step count and residual are
                kept.
        """
        shapes = shapes_of(sizes)
        new = initial_state(shapes, state, self.carried_state)
        self.check_residual(new)
        self._begin(shapes, new)
        return new

    def aggregate(
        self,
        comm: Communicator,
        gradient: Any,
        state: State,
        *,
        lr: float | Mapping[str, float] | None = None,
        overwrite: bool = False,
        overwrite_state: bool = False,
    ) -> tuple[Any, State]:
        """Average the corrected gradients of all ranks. Collective.

        The given state is not modified and stays valid if the step fails, unless
        `overwrite_state` is set.

        Args:
            comm: The communicator.
            gradient: Gradient of this rank: an array or tensor, or a mapping from names to
                them.
            state: State from `init` or from the previous step.
            lr: Learning rate that the mean will be multiplied by, or learning rates by name.
                If it changes between steps, the residual is multiplied by old / new, so that
                what is pending moves the weights as it would have done in its own step.
            overwrite: Whether dense gradients in a mapping may be overwritten by their means,
                which saves memory.
            overwrite_state: Whether the new state may be written to the arrays of the given
                one, which saves as much memory as they have. After an error the given state
                is then that of no step.

        Returns:
            The mean, of the same type and dtype as the gradient, and the new state. Entries
            of the state for parameters without a gradient are unchanged.
        """
        if not isinstance(comm, Communicator):
            raise TypeError(f"aggregate: comm must be a Communicator, got {comm!r}")
        with aborting(comm):
            check_state(state)
            parameters, back = opened(gradient, overwrite=overwrite, lr=lr)
            if overwrite_state:
                parameters = [replace(p, reuses_state=True) for p in parameters]
            self.check_residual(state)
            compare_ranks(comm, self, parameters, state)
            means, new = self._step(comm, parameters, state)
        given = {p.name for p in parameters}
        unchanged = {k: v for k, v in state.items() if name_of(k) not in given}
        rates = residual_rates(parameters, state, new)
        return back(means), {**unchanged, **new, **rates, STEP: state[STEP] + 1}

    def check_residual(self, state: State) -> None:
        """Raise a ValueError if this method would drop a residual in the state."""
        if self.keeps_residual:
            return
        if nonzero := [k for k in keys_of(state, RESIDUAL) if state[k].any()]:
            raise ValueError(
                f"{type(self).__name__}: needs error feedback to keep the residual of an "
                f"earlier method ({', '.join(nonzero)}); run one step with Dense() first"
            )

    @abstractmethod
    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        """Add the entries that the method needs to a state, which may have a residual."""

    @abstractmethod
    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        """Return the flat means by name and the new state, with the old step count."""

    def check_finite(
        self,
        comm: Communicator,
        name: str,
        gradient: Values,
        squared_norm: float | None = None,
        residual: Values | None = None,
    ) -> None:
        """Raise a ValueError for NaN and infinity, unless they are to be propagated.

        A finite squared norm proves that there are none and is cheaper to compute.
        """
        if self.nonfinite == "propagate":
            return
        if np.isfinite(
            np.vdot(gradient, gradient) if squared_norm is None else squared_norm
        ):
            return
        refuse_nonfinite(
            comm.rank, describe(name), gradient, scales_loss=not self.returns_update
        )
        if residual is not None:
            refuse_nonfinite(comm.rank, describe(name, "residual"), residual)
