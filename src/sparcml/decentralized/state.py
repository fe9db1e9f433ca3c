"""State of a decentralized method between steps: arrays by name.

A state is a dictionary that `np.savez(file, **state)` writes and `dict(np.load(file))` reads:

- `step`: number of completed steps;
- `size`: number of values of the model;
- further entries of a method, such as `momentum`, and `replica/3` for what belongs to rank 3.

Entries are flat: all parameters of the model, in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

State: TypeAlias = dict[str, NDArray[Any]]

STEP, SIZE = "step", "size"


def key(entry: str, rank: int) -> str:
    """Return the key of an entry that belongs to another rank."""
    return f"{entry}/{rank}"


def entry_of(state_key: str) -> str:
    """Return the entry of a key, without the rank."""
    return state_key.partition("/")[0]


def initial_state(size: int, previous: State | None, kept: Sequence[str]) -> State:
    """Return the state before the first step, with some entries of a previous one."""
    if previous is not None and int(previous.get(SIZE, size)) != size:
        raise ValueError(
            f"init: x must have as many values as in the previous state ({previous[SIZE]}), "
            f"got {size}"
        )
    state = keep_entries(previous or {}, kept)
    state.setdefault(STEP, np.array(0, np.int64))
    return {**state, SIZE: np.array(size, np.int64)}


def keep_entries(state: State, kept: Sequence[str]) -> State:
    """Return step, size and some entries of a state."""
    return {k: v for k, v in state.items() if entry_of(k) in (STEP, SIZE, *kept)}


def mean_state(states: Sequence[State], averaged: Sequence[str]) -> State:
    """Return step and size of the states of all ranks, and the means of some entries."""
    steps = {int(state[STEP]) for state in states}
    if len({int(state[SIZE]) for state in states}) > 1:
        raise ValueError("reshard: states must be of models of the same size")
    state = keep_entries(states[0], averaged)
    for k in state.keys() - {STEP, SIZE}:
        mean = np.mean([s[k] for s in states], axis=0, dtype=np.float64)
        state[k] = np.asarray(mean, state[k].dtype)
    return {**state, STEP: np.array(max(steps), np.int64)}
