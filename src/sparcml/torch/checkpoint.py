"""What is kept between runs: plain tensors, numbers and names, for `torch.save`.

A rank's own state fits that rank of a job of the same size, which then goes on as if it had
not stopped. A consolidated one holds the mean over ranks of everything and fits any job:
every rank of P then owes the mean, together P times as much, divided by P in the next mean:
as much as was owed before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate.state import STEP, consolidate, keys_of, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregate import Method, State
    from ..communicator.communicator import Communicator
    from .reducer import GradientReducer

VERSION = 3
READABLE = (2, VERSION)
# Names in `repr(method)` that version 2 (sparcml 0.1) spelled differently.
RENAMED = {
    r"\bkeep=": "global_topk=",
    r"nonfinite='pass'": "nonfinite='propagate'",
    r"\bBlocks\(": "BlockTopK(",
}
FIELDS = frozenset(
    ("version", "rank", "ranks", "method", "step", "norm", "shapes", "layout", "state")
)
Shapes = dict[str, tuple[int, ...]]


def saved(reducer: GradientReducer, layout: Any, shapes: Shapes) -> dict[str, Any]:
    """This rank's state."""
    return {
        "version": VERSION,
        "rank": reducer.comm.rank,
        "ranks": reducer.comm.size,
        "method": repr(reducer.method),
        "step": reducer.step,
        "norm": reducer.norm,
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "layout": [list(names) for names in layout],
        "state": {k: _tensor(v) for k, v in reducer.state.items() if k != STEP},
    }


def consolidated(reducer: GradientReducer, layout: Any, shapes: Shapes) -> dict[str, Any]:
    """The same for any number of ranks: a collective call."""
    means = consolidate(reducer.comm, reducer.state)
    tensors = {k: _tensor(v) for k, v in means.items() if k != STEP}
    return {**saved(reducer, layout, shapes), "rank": None, "state": tensors}


def _tensor(array: NDArray[Any]) -> Any:
    """The same memory: a state's arrays are replaced, never changed."""
    return torch.from_numpy(np.asarray(array))


def restored(
    found: Mapping[str, Any], comm: Communicator, method: Method, shapes: Shapes
) -> State:
    """A state to go on from, if it is this rank's and this model's."""
    if not isinstance(found, Mapping):
        raise TypeError(
            f"load_state_dict: expected what state_dict() has given, got {type(found).__name__}"
        )
    missing = FIELDS - found.keys()
    if missing or found["version"] not in READABLE:
        raise ValueError(
            f"load_state_dict: this is no state of sparcml.torch, version {VERSION} (of a "
            f"model or an optimizer?): {', '.join(sorted(missing)) or found['version']}"
        )
    _check_place(found, comm)
    _check_model({n: tuple(shape) for n, shape in found["shapes"].items()}, shapes)
    state: State = {k: np.array(v) for k, v in found["state"].items()}
    _check_sizes(state, shapes)
    state[STEP] = np.array(found["step"], np.int64)
    if _method_of(found) == repr(method):
        return state
    known = sorted({n for k in state if (n := name_of(k)) is not None})
    return method.init({n: shapes[n] for n in known}, state)


def _method_of(found: Mapping[str, Any]) -> str:
    """Return the saved `repr(method)` in the names of this version."""
    text = str(found["method"])
    if found["version"] < VERSION:
        for old, new in RENAMED.items():
            text = re.sub(old, new, text)
    return text


def _check_place(found: Mapping[str, Any], comm: Communicator) -> None:
    if found["rank"] is None:
        return
    if found["ranks"] != comm.size:
        raise ValueError(
            f"load_state_dict: this state is of a job of {found['ranks']} ranks, here are "
            f"{comm.size}; save with state_dict(consolidate=True) for another number of ranks"
        )
    if found["rank"] != comm.rank:
        raise ValueError(
            f"load_state_dict: rank {comm.rank} was given the state of rank {found['rank']}; "
            f"every rank saves and loads a file of its own, or all load one from "
            f"state_dict(consolidate=True)"
        )


def _check_model(then: Shapes, now: Shapes) -> None:
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) != now.get(name):
            raise ValueError(
                f"load_state_dict: the state is of another model, whose parameter {name!r} "
                f"{_shaped(then.get(name))}; here it {_shaped(now.get(name))}"
            )


def _shaped(shape: tuple[int, ...] | None) -> str:
    return "is missing" if shape is None else f"has the shape {shape}"


def _check_sizes(state: State, shapes: Shapes) -> None:
    for where, array in state.items():
        name = name_of(where) or ""
        size = int(np.prod(shapes.get(name, ()), dtype=np.int64))
        whole = where in keys_of({where: 0}, "residual") or where.startswith("momentum/")
        if name not in shapes or (whole and array.size != size):
            raise ValueError(
                f"load_state_dict: {where!r} has {array.size} values, which no parameter of "
                f"this model has; the state is damaged"
            )
