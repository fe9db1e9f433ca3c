"""Checks of the arguments of a step, on this rank and between ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregate.checks import CheckedSteps
from ..communicator.collective_errors import find_difference
from ..communicator.communicator import Communicator
from ..errors import MismatchError
from .state import SIZE, STEP, entry_of

if TYPE_CHECKING:
    from ..aggregate.flat_model import Layout, Model
    from .base import Method
    from .state import State
    from .topologies import Topology


def check_call(function: str, comm: Any, topology: Topology) -> None:
    """Raise unless this is a communicator of the topology's size."""
    if not isinstance(comm, Communicator):
        raise TypeError(f"{function}: comm must be a Communicator, got {comm!r}")
    if comm.size != topology.size:
        raise ValueError(
            f"{function}: topology must be for {comm.size} ranks, got {topology.name} for "
            f"{topology.size}; construct it with comm.size"
        )


def check_state(function: str, state: Any) -> None:
    """Raise a TypeError unless this is the state of a decentralized method."""
    if not isinstance(state, Mapping) or STEP not in state or SIZE not in state:
        keys = f"keys {sorted(state)}" if isinstance(state, Mapping) else repr(state)
        raise TypeError(
            f"{function}: state must be a result of init() or of the last step(), got {keys}"
        )


def check_size(function: str, model: Model, state: State) -> None:
    """Raise unless the state is that of a model of this size."""
    if int(state[SIZE]) != model.layout.size:
        raise ValueError(
            f"{function}: x must have as many values as the state ({state[SIZE]}), got "
            f"{model.layout.size}; create the state with init(x)"
        )


def check_rate(lr: Any) -> float:
    """Return a learning rate as a float."""
    is_real = isinstance(lr, int | float | np.floating) and not isinstance(lr, bool)
    if not is_real or not 0 <= lr < math.inf:
        raise ValueError(f"step: lr must be a finite number >= 0, got {lr!r}")
    return float(lr)


def compare_ranks(
    function: str, comm: Communicator, method: Method, layout: Layout, state: State
) -> None:
    """Raise unless all ranks have the same method, parameters and step.

    Ranks compare them once per communicator, and again whenever a state is not that of the
    next step. `begin` and `step` check the same state.
    """
    if comm.size == 1:
        return
    step, case = int(state[STEP]), (method, layout)
    checked = comm.cache.get(CheckedSteps)
    expected = checked.next.get(case)
    checked.next[case] = step + 1
    if expected is not None and (
        not method.is_synchronous or step in (expected, expected - 1)
    ):
        return
    facts: dict[str, object] = {
        "method": f"{method} ({method.topology.fingerprint:#x})",
        "parameters": layout,
        "entries of the state": sorted({entry_of(key) for key in state}),
    }
    if method.is_synchronous:
        facts["step"] = step
    difference = find_difference(comm, facts)
    if difference is not None:
        fact, rank = difference
        raise MismatchError(
            f"{function}: rank {comm.rank} and rank {rank} differ in {fact}; all ranks must "
            f"pass the same method, parameters and step; here it is {facts[fact]}"
        )
