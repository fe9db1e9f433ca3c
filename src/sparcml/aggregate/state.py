"""What a method remembers between steps: plain arrays by name, to be kept as they are.

A state is a dict that `np.savez(file, **state)` writes and `dict(np.load(file))` reads:

- `step`: how many steps were made;
- `residual/<parameter>`: what this rank owes, the rest of its gradients so far;
- whatever else a method needs, such as `momentum/<parameter>`.

A gradient without a name has keys without one: `residual`.
"""

from __future__ import annotations

import math
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


def name_of(where: str) -> str | None:
    """Which parameter a key of a state is about; None for the step."""
    return None if where == STEP else where.partition("/")[2]


def keys_of(state: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The keys of a kind."""
    return (k for k in state if k == kind or k.startswith(f"{kind}/"))


def initial_state(
    shapes: Mapping[str, Shape], previous: State | None, keeps: Sequence[str] = ()
) -> State:
    """A state at the first step, or what another method leaves to this one.

    Of the other method's, its step and what it owes are kept, and what is of the kinds in
    `keeps`.
    """
    previous = previous or {}
    state: State = {STEP: np.array(previous.get(STEP, 0), np.int64)}
    for kind in (RESIDUAL, *keeps):
        for where in keys_of(previous, kind):
            _check_fits(where, previous[where], shapes, owed=kind == RESIDUAL)
            state[where] = previous[where]
    return state


def _check_fits(
    where: str, found: NDArray[Any], shapes: Mapping[str, Shape], *, owed: bool
) -> None:
    name = name_of(where) or ""
    size = math.prod(shapes[name]) if name in shapes else None
    if size != found.size and (owed or size is not None):
        there = "no parameter of that name" if size is None else f"a parameter of {size}"
        raise ValueError(
            f"init: the state to go on from has {where!r} with {found.size} values, but there "
            f"is {there}: what is owed would be lost"
        )


def zeros(state: State, kind: str, name: str, size: int) -> None:
    """Begin with nothing, unless there is something already."""
    state.setdefault(key(kind, name), np.zeros(size, np.float32))


def load(state: State, kind: str, parameter: Parameter) -> Values | None:
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
    what is owed is scaled to count as much as before: sum of residuals / ranks stays. Of
    everything else, such as momentum, a rank gets the mean of those it stands for, and a
    new one a copy.
    """
    if not states or ranks < 1:
        raise ValueError(
            f"reshard: from {len(states)} states to {ranks} ranks is no change"
        )
    first = states[0]
    for other in states:
        if other.keys() != first.keys() or other[STEP] != first[STEP]:
            raise ValueError(
                "reshard: the states differ in their step or in what they hold"
            )
    return [
        {where: _share(where, [s[where] for s in states], rank, ranks) for where in first}
        for rank in range(ranks)
    ]


def _share(
    where: str, found: Sequence[NDArray[Any]], rank: int, ranks: int
) -> NDArray[Any]:
    mine = found[rank::ranks] or [found[rank % len(found)]]
    if where == STEP:
        return mine[0].copy()
    if where not in keys_of({where: 0}, RESIDUAL):
        return np.mean(mine, axis=0, dtype=np.float64).astype(mine[0].dtype)
    if rank >= len(found):
        return np.zeros_like(mine[0])
    total = np.sum(mine, axis=0)
    return np.asarray(total * total.dtype.type(ranks / len(found)))
