"""Checks of the arguments of a step, on this rank and between ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..communicator.collective_errors import find_difference
from ..communicator.communicator import Communicator
from ..errors import MismatchError
from ..validation import check_real
from .state import SIZE, STEP, residual_keys

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..aggregate.flat_model import Layout, Model
    from ..stream.arrays import Values
    from .base import Method
    from .state import State

REMEDY = {
    "method": "all ranks must pass the same settings, with fragments in the same order",
    "parameters": "all ranks must pass the same names, shapes and dtypes",
    "step": "all ranks must make the same number of steps",
    "shared model": "all ranks must start from the same x and state; broadcast them once",
}


def check_call(function: str, comm: Any, state: Any) -> None:
    """Raise a TypeError unless these are a communicator and the state of a local method."""
    if not isinstance(comm, Communicator):
        raise TypeError(
            f"{function}: comm must be a Communicator, got {comm!r}; use sparcml.world()"
        )
    if not isinstance(state, Mapping) or STEP not in state or SIZE not in state:
        keys = f"keys {sorted(state)}" if isinstance(state, Mapping) else repr(state)
        raise TypeError(
            f"{function}: state must be a result of init() or of the last step(), got {keys}; call "
            f"init(x) before the first step"
        )


def check_model(function: str, rank: int, model: Model, state: State) -> None:
    """Raise a ValueError unless the model is finite and has the size of the state."""
    if int(state[SIZE]) != model.layout.size:
        raise ValueError(
            f"{function}: x must have as many values as the state ({state[SIZE]}), got "
            f"{model.layout.size}; create the state with init(x)"
        )
    if not np.isfinite(np.vdot(model.values, model.values)):
        bad = np.flatnonzero(~np.isfinite(model.values))
        if len(bad):
            raise ValueError(
                f"{function}: x of rank {rank} must be finite, got {len(bad)} values that are NaN "
                f"or infinite, the first at index {bad[0]}; check the loss and the learning rate"
            )


def compare_ranks(
    function: str,
    comm: Communicator,
    method: Method,
    layout: Layout,
    step: int,
    shared: Values | None,
) -> None:
    """Raise on all ranks unless they agree on method, parameters, step and shared model."""
    if comm.size == 1:
        return
    facts: dict[str, object] = {
        "method": method,
        "parameters": (layout.names, layout.shapes, str(layout.dtype)),
        "step": step,
    }
    if shared is not None:
        facts["shared model"] = kernels.crc32c(shared.view(np.uint8))
    difference = find_difference(comm, facts)
    if difference is not None:
        fact, rank = difference
        raise MismatchError(
            f"{function}: rank {comm.rank} and rank {rank} differ in {fact}; {REMEDY[fact]}; here "
            f"it is {layout if fact == 'parameters' else facts[fact]}"
        )


def refuse_residual(method: Method, state: State, why: str = "") -> None:
    """Raise a ValueError if a state has a residual, which the method would lose."""
    if keys := residual_keys(state):
        raise ValueError(
            f"{type(method).__name__}: state must have no residual{why}, got {', '.join(keys)}; "
            f"first complete a round of LocalSGD with the fragments of the earlier method, which "
            f"sends all of it"
        )


def check_fraction(owner: object, parameter: str, *, below_one: bool = True) -> None:
    """Raise a ValueError unless a setting is from 0 to (below) 1."""
    check_real(owner, parameter)
    value = getattr(owner, parameter)
    if not 0 <= value <= 1 or (below_one and value == 1):
        limit = "below 1" if below_one else "1"
        raise ValueError(
            f"{type(owner).__name__}: {parameter} must be from 0 to {limit}, got {value}"
        )


def check_positive(owner: object, parameter: str) -> None:
    """Raise a ValueError unless a setting is a finite number above 0."""
    check_real(owner, parameter)
    value = getattr(owner, parameter)
    if not 0 < value < np.inf:
        raise ValueError(
            f"{type(owner).__name__}: {parameter} must be a finite number above 0, got {value}"
        )


@dataclass
class Compared:
    """The next step that needs no comparison between ranks, by method."""

    next: dict[Hashable, int] = field(default_factory=dict)
