"""Saved states of local training: tensors, numbers and strings, for `torch.save`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..local.state import SIZE, STEP
from ..stream.tensors import on_host

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..local import Method
    from ..local.state import State

VERSION = 1
FIELDS = frozenset(("version", "rank", "ranks", "method", "state", "start"))
EVERY_RANK = -1  # rank of a consolidated state


def saved_state(rank: int, ranks: int, method: Method, state: State) -> dict[str, Any]:
    """Return a state; the caller may keep it."""
    return {
        "version": VERSION,
        "rank": rank,
        "ranks": ranks,
        "method": str(method),
        "state": {key: torch.from_numpy(np.array(v)) for key, v in state.items()},
    }


def restored_state(
    function: str, saved: Any, comm: Communicator, method: Method, size: int
) -> State:
    """Return the state for a method, after checking that it fits rank and model."""
    if not isinstance(saved, Mapping) or not saved.keys() >= FIELDS:
        raise ValueError(
            f"load_state_dict: state must be a result of {function}.state_dict(), got "
            f"{_described(saved)}; pass what was saved of it"
        )
    if saved["version"] != VERSION:
        raise ValueError(
            f"load_state_dict: version of the state must be {VERSION}, got {saved['version']}; "
            f"load it with the version of sparcml that saved it"
        )
    if saved["method"] != str(method):
        raise ValueError(
            f"load_state_dict: state must be of {method}, got {saved['method']}; construct "
            f"{function} with its settings"
        )
    if saved["rank"] != EVERY_RANK and saved["ranks"] != comm.size:
        raise ValueError(
            f"load_state_dict: world size of the state must be {comm.size}, got "
            f"{saved['ranks']}; to change it, save state_dict(consolidate=True)"
        )
    if saved["rank"] not in (EVERY_RANK, comm.rank):
        raise ValueError(
            f"load_state_dict: state must be of rank {comm.rank}, got that of rank "
            f"{saved['rank']}; save one file per rank"
        )
    state: State = {key: on_host(value).copy() for key, value in saved["state"].items()}
    if STEP not in state or int(state.get(SIZE, -1)) != size:
        raise ValueError(
            f"load_state_dict: state must be of a model with {size} values, got "
            f"{state.get(SIZE)}; construct the model that it was saved with"
        )
    return state


def _described(saved: Any) -> str:
    if not isinstance(saved, Mapping):
        return type(saved).__name__
    return f"one without {', '.join(sorted(FIELDS - saved.keys()))}"
