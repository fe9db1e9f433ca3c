"""What a method is: a frozen set of settings, a state, and one step."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import MismatchError, SparcmlError
from .gradients import describe, opened, shapes_of
from .state import RESIDUAL, STEP, initial_state, keys_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.stream import Values
    from .gradients import Parameter, Shape
    from .state import State

CHOICES = ("raise", "propagate")


class Method(ABC):
    """Averages the ranks' gradients; subclasses are frozen dataclasses.

    Attributes:
        nonfinite: What to do with NaN and infinity in a gradient: "raise" says which
            parameter of which rank has them, and all ranks stop; "propagate" hands them on, so
            that they are in the mean.
        keeps_residual: Whether it sends what an earlier method owes, now or later.
        carried_state: What it takes over from a state of its own kind, beside what is owed.
    """

    nonfinite: str
    carried_state: ClassVar[tuple[str, ...]] = ()

    @property
    def keeps_residual(self) -> bool:
        """See above."""
        return True

    def __post_init__(self) -> None:
        if self.nonfinite not in CHOICES:
            known = " or ".join(CHOICES)
            raise ValueError(f"nonfinite must be {known}, got {self.nonfinite!r}")

    def init(self, sizes: Any, state: State | None = None) -> State:
        """The state before the first step.

        Args:
            sizes: A size, a shape, or shapes by name, as the gradients will have; arrays
                stand for their shapes.
            state: The state of another method to go on from: nothing of what it owes is
                lost.
        """
        shapes = shapes_of(sizes)
        begun = initial_state(shapes, state, self.carried_state)
        self.check_residual(begun)
        self._begin(shapes, begun)
        return begun

    def aggregate(
        self, comm: Communicator, gradient: Any, state: State, *, overwrite: bool = False
    ) -> tuple[Any, State]:
        """One step: the mean over all ranks of what they owe, and the state after it.

        A collective call. The old state is not changed: should the step fail, it still
        holds, without this gradient.

        Args:
            comm: The ranks.
            gradient: This rank's: an array or tensor, or many by name.
            state: From `init`, or from the step before.
            overwrite: Whether dense gradients by name may be overwritten: where that saves
                memory, their means are then found in their place.

        Returns:
            The mean, as the same kind of thing as the gradient and rounded to its dtype, and the
            new state. What the state holds of parameters that have no gradient now stays.
        """
        try:
            parameters, back = opened(gradient, overwrite=overwrite)
            self.check_residual(state)
            _same_everywhere(comm, self, parameters, state)
            means, new = self._step(comm, parameters, state)
        except SparcmlError:
            raise  # all ranks know
        except Exception as error:
            if comm.size > 1:
                comm.abort(error)  # the others would wait for this rank
            raise
        given = {p.name for p in parameters}
        untouched = {k: v for k, v in state.items() if name_of(k) not in given}
        return back(means), {**untouched, **new, STEP: state[STEP] + 1}

    def check_residual(self, state: State) -> None:
        """Raise if something is owed that this method would drop."""
        if self.keeps_residual:
            return
        if owing := [k for k in keys_of(state, RESIDUAL) if state[k].any()]:
            raise ValueError(
                f"{type(self).__name__}: without error feedback it cannot pay what an earlier "
                f"method owes ({', '.join(owing)}): make one step with Dense() first"
            )

    @abstractmethod
    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        """Add what the method needs to a state that may owe something already."""

    @abstractmethod
    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        """The means by name, flat, and the state but for its step."""

    def check_finite(
        self,
        comm: Communicator,
        name: str,
        gradient: Values,
        squares: float | None = None,
        residual: Values | None = None,
    ) -> None:
        """Raise if the caller wants to know of NaN and infinity and there are some.

        A finite sum of squares says that there are none, and is faster to find.
        """
        if self.nonfinite == "propagate":
            return
        if np.isfinite(np.vdot(gradient, gradient) if squares is None else squares):
            return
        _refuse_nonfinite(comm.rank, describe(name), gradient)
        if residual is not None:
            _refuse_nonfinite(comm.rank, f"what is owed for {name!r}", residual)


def _refuse_nonfinite(rank: int, what: str, values: Values) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"rank {rank}: {what} has {len(bad)} values that are NaN or infinite, the first at "
            f"{bad[0]}; mend the loss or the learning rate, or set "
            f'nonfinite="propagate"'
        )


def _same_everywhere(
    comm: Communicator, method: Method, parameters: Sequence[Parameter], state: State
) -> None:
    """Raise unless all ranks do the same with the same.

    Looked at when a communicator first sees it, and when a state is not of the next step.
    """
    layout = tuple((p.name, p.shape, str(p.values.dtype)) for p in parameters)
    kind, step = ("layout", method, layout), int(state[STEP])
    if comm.size > 1 and comm.cache.next_steps.get(kind) != step:
        _compare(comm, {"parameters": layout, "method": method, "step": step})
    comm.cache.next_steps[kind] = step + 1


def _compare(comm: Communicator, said: Mapping[str, object]) -> None:
    mine = [zlib.crc32(repr(what).encode()) for what in said.values()]
    everyones = np.array(comm.allgather(np.array(mine, np.float64)))
    for column, (what, here) in zip(everyones.T, said.items(), strict=True):
        others = np.flatnonzero(column != column[comm.rank])
        if len(others):
            raise MismatchError(
                f"rank {comm.rank} and rank {others[0]} differ in {what}: all ranks must "
                f"aggregate the same names, shapes and dtypes with the same method, from "
                f"states of the same step; here it is {here}"
            )
