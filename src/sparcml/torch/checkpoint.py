"""Saved states of handles: tensors, numbers and strings, for `torch.save`.

The state of a rank fits the same rank of a job of the same world size, which then continues as
if it had not stopped. A consolidated state holds means over all ranks and fits any job, see
`sparcml.aggregate.state.consolidate`.

Version 4 of the format differs from version 3 in the settings that `repr(method)` contains, and
that from version 2 (sparcml 0.1) in their names; all are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate.frozen_adam import EXP_AVG, FrozenAdam
from ..aggregate.state import RESIDUAL, STEP, consolidate, key, keys_of, name_of
from .tensors import plain_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregate import Method, State
    from ..communicator.communicator import Communicator
    from .reducer import GradientReducer

VERSION = 4
READABLE = (2, 3, VERSION)
# Settings in `repr(method)` that version 3 did not have, with values that change nothing.
ADDED = (
    ", momentum=0.0, nesterov=False, masking=False, warm_up=0, steps=None, clip=None",
    ", steps=None",
)
# Names of version 2 in `repr(method)`, and those of today.
RENAMED = {
    r"\bkeep=": "global_topk=",
    r"nonfinite='pass'": "nonfinite='propagate'",
    r"\bBlocks\(": "BlockTopK(",
    r"\bWhole\(step=([^,]*), most=": r"Integer(step=\1, max=",
}
FIELDS = frozenset(
    ("version", "rank", "ranks", "method", "step", "norm", "shapes", "layout", "state")
)
Shapes = dict[str, tuple[int, ...]]


def saved_state(reducer: GradientReducer, layout: Any, shapes: Shapes) -> dict[str, Any]:
    """Return the state of this rank."""
    return {
        "version": VERSION,
        "rank": reducer.comm.rank,
        "ranks": reducer.comm.size,
        "method": repr(reducer.method),
        "step": reducer.step,
        "norm": reducer.norm,
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "layout": [list(names) for names in layout],
        "state": _tensors(reducer.share_state()),
    }


def consolidated_state(
    reducer: GradientReducer, layout: Any, shapes: Shapes
) -> dict[str, Any]:
    """Return one state for any world size. Collective."""
    means = consolidate(reducer.comm, reducer.state)
    state = saved_state(reducer, layout, shapes)
    return {**state, "rank": None, "state": _tensors(means)}


def _tensors(state: State) -> dict[str, Any]:
    """Return tensors that share the memory of the arrays, which steps never modify."""
    return {k: _tensor(v) for k, v in state.items() if k != STEP}


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(np.asarray(array))


def restore(
    saved: Mapping[str, Any], comm: Communicator, method: Method, shapes: Shapes
) -> State:
    """Return the arrays of a saved state, after checking that they fit rank and model."""
    if not isinstance(saved, Mapping):
        raise TypeError(
            f"load_state_dict: state must be a result of state_dict(), got "
            f"{type(saved).__name__}"
        )
    missing = FIELDS - saved.keys()
    if missing:
        raise ValueError(
            f"load_state_dict: state must be a result of a handle's state_dict(), got a "
            f"dictionary without {', '.join(sorted(missing))}; pass the handle's state, not "
            f"the model's or the optimizer's"
        )
    if saved["version"] not in READABLE:
        raise ValueError(
            f"load_state_dict: version of the state must be {READABLE[0]} to {VERSION}, got "
            f"{saved['version']}; load it with the version of sparcml that saved it"
        )
    _check_rank(saved, comm)
    saved_shapes = {plain_name(n): tuple(shape) for n, shape in saved["shapes"].items()}
    _check_model(saved_shapes, shapes)
    state: State = {plain_key(k): np.array(v) for k, v in saved["state"].items()}
    _check_sizes(state, shapes)
    state[STEP] = np.array(saved["step"], np.int64)
    if _saved_method(saved) == _name_in(saved["version"], method):
        return state
    _check_moments(saved, state, method)
    names = sorted({n for k in state if (n := name_of(k)) is not None})
    return method.init({n: shapes[n] for n in names}, state)


def plain_key(k: str) -> str:
    """Return a key of a state that a compiled model may have saved."""
    entry, _, name = k.partition("/")
    return key(entry, plain_name(name))


def _saved_method(saved: Mapping[str, Any]) -> str:
    """Return the saved `repr(method)` in the names of this version."""
    text = str(saved["method"])
    if saved["version"] == READABLE[0]:
        for old, new in RENAMED.items():
            text = re.sub(old, new, text)
    return text


def _name_in(version: int, method: Method) -> str:
    """Return `repr(method)` as a version of the format has it."""
    text = repr(method)
    if version < VERSION:
        for added in ADDED:
            text = text.replace(added, "")
    return text


def _check_rank(saved: Mapping[str, Any], comm: Communicator) -> None:
    if saved["rank"] is None:
        return
    if saved["ranks"] != comm.size:
        raise ValueError(
            f"load_state_dict: world size of the state must be {comm.size}, got "
            f"{saved['ranks']}; save with state_dict(consolidate=True) to change it"
        )
    if saved["rank"] != comm.rank:
        raise ValueError(
            f"load_state_dict: state of rank {comm.rank} expected, got that of rank "
            f"{saved['rank']}; save one file per rank, or one for all with "
            f"state_dict(consolidate=True)"
        )


def _check_model(saved: Shapes, shapes: Shapes) -> None:
    for name in sorted(saved.keys() | shapes.keys()):
        if saved.get(name) != shapes.get(name):
            raise ValueError(
                f"load_state_dict: the state is of another model: its parameter {name!r} "
                f"{_describe_shape(saved.get(name))}, that of this model "
                f"{_describe_shape(shapes.get(name))}"
            )


def _check_moments(saved: Mapping[str, Any], state: State, method: Method) -> None:
    """Raise if an optimizer would continue with a first moment that differs between ranks."""
    unequal = {name_of(k) or "" for k in keys_of(state, EXP_AVG)}
    if isinstance(method, FrozenAdam):
        unequal = {name for name in unequal if not method.is_frozen(state, name)}
    if unequal and saved["rank"] is not None:
        raise ValueError(
            f"load_state_dict: the state is of {saved['method']}, with which every rank has its "
            f"own exp_avg, and {method} needs equal ones; resume with the method of the state, "
            f"then call handle.change(method)"
        )


def _describe_shape(shape: tuple[int, ...] | None) -> str:
    return "is missing" if shape is None else f"has the shape {shape}"


def _check_sizes(state: State, shapes: Shapes) -> None:
    for k, array in state.items():
        name = name_of(k) or ""
        size = int(np.prod(shapes.get(name, ()), dtype=np.int64))
        is_full = k in keys_of({k: 0}, RESIDUAL) or k.startswith("momentum/")
        if name not in shapes or (is_full and array.size != size):
            raise ValueError(
                f"load_state_dict: {k!r} has {array.size} values and fits no parameter of "
                f"this model; the state is damaged"
            )
