"""State of a local method between steps: arrays by name.

A state is a dictionary that `np.savez(file, **state)` writes and `dict(np.load(file))` reads:

- `step`: number of completed inner steps;
- `size`: number of values of the model;
- `shared`: the model at the start of the round, the same bits on all ranks;
- `momentum`: momentum of the outer optimizer, the same bits on all ranks;
- `aggregate/P/...`: state of the aggregation method for fragment P, such as a residual;
- `pending`: this rank's change of the fragment in flight;
- `finished`: the step after which the round was last completed early;
- `carried`: the step after which the method was last changed.

`shared`, `momentum` and `pending` are flat: all parameters, in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..aggregate.state import RESIDUAL, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

State: TypeAlias = dict[str, NDArray[Any]]

STEP, SIZE, SHARED = "step", "size", "shared"
MOMENTUM, PENDING, AGGREGATE = "momentum", "pending", "aggregate"
FINISHED, CARRIED = "finished", "carried"


def initial_state(size: int, previous: State | None) -> State:
    """Return step and size, with the step of a previous state."""
    if previous is not None and int(previous.get(SIZE, size)) != size:
        raise ValueError(
            f"init: x must have as many values as in the previous state ({previous[SIZE]}), got "
            f"{size}; pass a state of the same model"
        )
    step = 0 if previous is None else int(previous[STEP])
    return {STEP: np.array(step, np.int64), SIZE: np.array(size, np.int64)}


def aggregate_state(state: Mapping[str, NDArray[Any]], fragment: int) -> State:
    """Return the state of the aggregation method for a fragment; empty if there is none."""
    prefix = f"{AGGREGATE}/{fragment}/"
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def residual_keys(state: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the keys of the residuals of all fragments that are not zero."""
    folder = f"{AGGREGATE}/"
    entries = {
        k: k.removeprefix(folder).partition("/")[2] for k in state if k.startswith(folder)
    }
    found = [*keys_of(dict.fromkeys(entries.values()), RESIDUAL)]
    return [k for k, entry in entries.items() if entry in found and state[k].any()]


def with_aggregate_state(state: State, fragment: int, entries: State) -> State:
    """Return the state with another state of the aggregation method for a fragment."""
    prefix = f"{AGGREGATE}/{fragment}/"
    others = {k: v for k, v in state.items() if not k.startswith(prefix)}
    return {**others, **{prefix + k: v for k, v in entries.items()}}
