"""What a method remembers between steps: plain arrays by name, to be kept as they are.

A state is a dict that `np.savez(file, **state)` writes and `dict(np.load(file))` reads:

- `step`: how many steps were made;
- `residual/<parameter>`: what this rank owes, the rest of its gradients so far;
- whatever else a method needs, such as `momentum/<parameter>`.

A gradient without a name has keys without one: `residual`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..stream.stream import Values
    from .gradients import Parameter, Shape

State: TypeAlias = dict[str, NDArray[Any]]

STEP, RESIDUAL = "step", "residual"


def key(kind: str, name: str) -> str:
    """Where a state has something of a parameter."""
    return f"{kind}/{name}" if name else kind


def of_kind(state: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The keys of a kind."""
    return (k for k in state if k == kind or k.startswith(f"{kind}/"))


def fresh(shapes: Mapping[str, Shape], previous: State | None) -> State:
    """A state at the first step, or what another method leaves to this one.

    Of the other method's, its step and what it owes are kept.
    """
    state: State = {STEP: np.zeros((), np.int64)}
    if previous is None:
        return state
    state[STEP] = np.array(previous[STEP], np.int64)
    for where in of_kind(previous, RESIDUAL):
        _, _, name = where.partition("/")
        if name not in shapes:
            raise ValueError(
                f"init: the state to go on from owes something for {name!r}, but there is no "
                f"parameter of that name: it would be lost"
            )
        state[where] = previous[where]
    return state


def zeros(state: State, kind: str, name: str, size: int) -> None:
    """Begin with nothing, unless there is something already."""
    state.setdefault(key(kind, name), np.zeros(size, np.float32))


def recalled(state: State, kind: str, parameter: Parameter) -> Values | None:
    """What the state has of a parameter, in the gradient's precision, flat."""
    found = state.get(key(kind, parameter.name))
    if found is None:
        return None
    if found.size != parameter.size:
        raise ValueError(
            f"the state's {key(kind, parameter.name)!r} has {found.size} values, the gradient "
            f"{parameter.size}: make the state with init({parameter.shape})"
        )
    flat = np.ascontiguousarray(found).reshape(-1)
    return flat.astype(parameter.values.dtype, copy=False)


def reshard(states: Sequence[State], ranks: int) -> list[State]:
    """The states of all ranks, for another number of ranks.

    Whoever is gone leaves what it owed to rank (its own) modulo `ranks`; new ranks owe
    nothing. A mean over another number of ranks weighs each rank's share differently, so
    what is owed is scaled to count as much as before: sum of residuals / ranks stays.
    Everything else is as rank 0 has it, or as the rank had it itself.
    """
    if not states or ranks < 1:
        raise ValueError(
            f"reshard: from {len(states)} states to {ranks} ranks is no change"
        )
    scale = ranks / len(states)
    results = []
    for rank in range(ranks):
        new = dict(states[rank if rank < len(states) else 0])
        for where in list(of_kind(new, RESIDUAL)):
            mine = [s[where] for s in states[rank::ranks]]
            total = np.zeros_like(new[where]) if not mine else np.sum(mine, axis=0)
            new[where] = total * new[where].dtype.type(scale)
        results.append(new)
    return results
