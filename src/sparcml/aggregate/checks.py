"""Checks of the arguments of a step, on this rank and between ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..communicator.collective_errors import find_difference
from ..errors import MismatchError
from .state import STEP

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .base import Method
    from .gradients import Parameter
    from .state import State


def refuse_nonfinite(
    rank: int, what: str, values: Values, *, scales_loss: bool = True
) -> None:
    """Raise a ValueError if values are NaN or infinite, with the first of them.

    Args:
        rank: This rank.
        what: What the values are.
        values: The values.
        scales_loss: Whether a GradScaler may be in use.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    advises = scales_loss and "torch" in sys.modules
    scaler = ", pass scaler= if a GradScaler is in use" if advises else ""
    if len(bad):
        raise ValueError(
            f"rank {rank}: {what} has {len(bad)} values that are NaN or infinite, the first "
            f"at index {bad[0]}; check the loss and learning rate{scaler}, or set "
            f'nonfinite="propagate"'
        )


def check_state(state: Any) -> None:
    """Raise a TypeError unless this is the state of a method."""
    if not isinstance(state, Mapping) or STEP not in state:
        keys = f"keys {sorted(state)}" if isinstance(state, Mapping) else repr(state)
        raise TypeError(
            f"aggregate: state must be a result of init() or of the previous aggregate(), got "
            f"{keys}"
        )


@dataclass
class CheckedSteps:
    """The next step that needs no comparison between ranks, by method and layout."""

    next: dict[Hashable, int] = field(default_factory=dict)


def compare_ranks(
    comm: Communicator, method: Method, parameters: Sequence[Parameter], state: State
) -> None:
    """Raise unless all ranks have the same method, parameters and step.

    Ranks compare them once per communicator, and again whenever a state is not that of the
    next step.
    """
    layout = tuple([(p.name, p.shape, p.values.dtype) for p in parameters])
    case, step = ("layout", method, layout), int(state[STEP])
    checked = comm.cache.get(CheckedSteps)
    if comm.size > 1 and checked.next.get(case) != step:
        named = tuple((name, shape, str(dtype)) for name, shape, dtype in layout)
        _compare(comm, {"parameters": named, "method": method, "step": step})
    checked.next[case] = step + 1


def _compare(comm: Communicator, facts: Mapping[str, object]) -> None:
    difference = find_difference(comm, facts)
    if difference is not None:
        fact, rank = difference
        raise MismatchError(
            f"aggregate: rank {comm.rank} and rank {rank} differ in {fact}; all ranks must "
            f"pass the same names, shapes and dtypes with the same method, and states of the "
            f"same step; here it is {facts[fact]}"
        )
