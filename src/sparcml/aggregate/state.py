"""State of a method between steps: arrays by name.

A state is a dictionary that `np.savez(file, **state)` writes and `dict(np.load(file))` reads:

- `step`: number of completed steps;
- `residual/<parameter>`: the part of this rank's gradients that has not been applied yet;
- `learning_rate/<parameter>`: learning rate of the last step, if it is known;
- further entries of a method, such as `momentum/<parameter>`.

The keys of a gradient without a name have no `/<parameter>`: `residual`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..communicator.collective_errors import find_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .gradients import Parameter, Shape

State: TypeAlias = dict[str, NDArray[Any]]

STEP, RESIDUAL, RATE = "step", "residual", "learning_rate"


def key(entry: str, name: str) -> str:
    """Return the key of an entry such as "residual" for a parameter."""
    return f"{entry}/{name}" if name else entry


def name_of(state_key: str) -> str | None:
    """Return the parameter's name in a key; None for the step."""
    return None if state_key == STEP else state_key.partition("/")[2]


def keys_of(state: Mapping[str, Any], entry: str) -> Iterator[str]:
    """Iterate over the keys of an entry such as "residual"."""
    return (k for k in state if k == entry or k.startswith(f"{entry}/"))


def initial_state(
    shapes: Mapping[str, Shape], previous: State | None, carried: Sequence[str] = ()
) -> State:
    """Return the state before the first step.

    From the state of a previous method, take over the step, the residual with its learning
    rate, and the entries in `carried`.
    """
    previous = previous or {}
    state: State = {STEP: np.array(previous.get(STEP, 0), np.int64)}
    for entry in (RESIDUAL, RATE, *carried):
        for k in keys_of(previous, entry):
            # A number per parameter, such as a count, fits any size.
            if entry == RESIDUAL or (entry != RATE and previous[k].ndim):
                _check_size(k, previous[k], shapes, required=entry == RESIDUAL)
            state[k] = previous[k]
    return state


def _check_size(
    k: str, array: NDArray[Any], shapes: Mapping[str, Shape], *, required: bool
) -> None:
    name = name_of(k) or ""
    size = math.prod(shapes[name]) if name in shapes else None
    if size != array.size and (required or size is not None):
        actual = "is missing" if size is None else f"has {size} values"
        raise ValueError(
            f"init: {k!r} of the previous state has {array.size} values, but the parameter "
            f"{actual}; pass all parameters of the previous state, or the residual is lost"
        )


def zeros(state: State, entry: str, name: str, size: int) -> None:
    """Add an entry of zeros for a parameter, unless the state has one."""
    state.setdefault(key(entry, name), np.zeros(size, np.float32))


def load(state: State, entry: str, parameter: Parameter) -> Values | None:
    """Return an entry of a parameter, flat and in the gradient's dtype; None if missing."""
    array = state.get(key(entry, parameter.name))
    if array is None:
        return None
    if array.size != parameter.size:
        raise ValueError(
            f"aggregate: {key(entry, parameter.name)!r} of the state must have as many values "
            f"as the gradient ({parameter.size}), got {array.size}; create the state with "
            f"init({parameter.shape})"
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.astype(parameter.values.dtype, copy=False)


def residual_rates(parameters: Sequence[Parameter], state: State, new: State) -> State:
    """Return the learning rates of new residuals; a rate of zero does not replace one."""
    rates: State = {}
    for p in parameters:
        k = key(RATE, p.name)
        if key(RESIDUAL, p.name) in new and (p.lr or k in state):
            rates[k] = np.array(p.lr) if p.lr else state[k]
    return rates


def reshard(
    states: Sequence[State], ranks: int, *, reduction: Literal["mean", "sum"] = "mean"
) -> list[State]:
    """Redistribute the states of all ranks over another number of ranks.

    See `reshard_rank` for the rules.

    Args:
        states: One state per rank, in rank order.
        ranks: New world size.
        reduction: Whether gradients are averaged over ranks or summed.
    """
    if not states or ranks < 1:
        raise ValueError(
            f"reshard: states and ranks must be at least one, got {len(states)} states and "
            f"{ranks} ranks"
        )
    first = states[0]
    for other in states:
        if other.keys() != first.keys() or other[STEP] != first[STEP]:
            raise ValueError(
                "reshard: states must have equal steps and keys; pass those of one step"
            )
    return [reshard_rank(states, rank, ranks, reduction=reduction) for rank in range(ranks)]


def reshard_rank(
    states: Sequence[Mapping[str, NDArray[Any]]],
    rank: int,
    ranks: int,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> State:
    """Return the state of one rank after a change of the world size.

    Rank r inherits the states of the old ranks r, r + ranks, r + 2 ranks and so on; only these
    are read. A new rank without any starts with a zero residual. Residuals are added. If
    gradients are averaged, the sum of all residuals is also multiplied by new / old world
    size, so that it contributes as much to the next mean as before. Of all other entries,
    such as momentum, a rank gets the mean of those it inherits, and a new rank a copy.
    """
    inherited = [states[k] for k in range(rank, len(states), ranks)]
    like = inherited[0] if inherited else states[rank % len(states)]
    scale = ranks / len(states) if reduction == "mean" else None
    return {k: _combine(k, [s[k] for s in inherited], like[k], scale) for k in like}


def _combine(
    k: str, arrays: list[NDArray[Any]], like: NDArray[Any], scale: float | None
) -> NDArray[Any]:
    if k in keys_of({k: 0}, RESIDUAL):
        if not arrays:
            return np.zeros_like(like)
        total = np.sum(arrays, axis=0)
        return total if scale is None else np.asarray(total * total.dtype.type(scale))
    if k == STEP or not arrays:
        return like.copy()
    return np.asarray(np.mean(arrays, axis=0, dtype=np.float64), like.dtype)


def consolidate(comm: Communicator, state: State) -> State:
    """Return one state for any world size: the mean of every entry. Collective.

    Counts, such as the steps of Adam, are equal on all ranks and stay as they are.

    If all of P ranks start with the mean residual, the residuals add up to P times the mean
    and are divided by P in the next mean: nothing is lost.
    """
    comm._session.barrier("consolidate")
    keys = sorted(k for k in state if k != STEP)
    if find_difference(comm, {"keys": keys}) is not None:
        raise ValueError(
            f"consolidate: ranks must have residuals of the same parameters, got other ones "
            f"on rank {comm.rank}; call it between steps, on all ranks"
        )
    counts = {k: state[k] for k in keys if state[k].dtype.kind in "biu"}
    numbers = {k: v.tolist() for k, v in counts.items()}
    if numbers and (difference := find_difference(comm, numbers)) is not None:
        raise ValueError(
            f"consolidate: counts must be equal on all ranks, got another {difference[0]!r} on "
            f"rank {difference[1]} than on rank {comm.rank}; call it between steps, on all ranks"
        )
    means = {STEP: state[STEP], **counts}
    for k in keys:
        if k in counts:
            continue
        flat = np.ascontiguousarray(state[k]).reshape(-1)
        means[k] = np.array(comm.allreduce(flat, op="mean")).reshape(state[k].shape)
    return means
