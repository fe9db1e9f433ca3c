"""Saved states of decentralized training: tensors, numbers and strings, for `torch.save`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..decentralized.methods.adpsgd import IN_FLIGHT
from ..decentralized.state import SIZE, STEP
from ..stream.tensors import on_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..communicator.communicator import Communicator
    from ..decentralized import Method
    from ..decentralized.state import State
    from ..stream.arrays import Values

VERSION = 1
FIELDS = frozenset(("version", "rank", "ranks", "method", "state"))


def in_flight(state: State) -> NDArray[np.int64]:
    """Return the ranks whose answer an asynchronous method awaits."""
    return state.get(IN_FLIGHT, np.empty(0, np.int64))


def saved_state(comm: Communicator, method: Method, state: State) -> dict[str, Any]:
    """Return the state of this rank; the caller may keep it."""
    if len(in_flight(state)):
        raise ValueError(
            f"state_dict: no averages may be in flight, got those with ranks "
            f"{in_flight(state).tolist()}; call model.flush() first"
        )
    return {
        "version": VERSION,
        "rank": comm.rank,
        "ranks": comm.size,
        "method": describe(method),
        "state": {key: torch.from_numpy(np.array(v)) for key, v in state.items()},
    }


def restored_state(saved: Any, comm: Communicator, method: Method, x: Values) -> State:
    """Return the state for a method, after checking that it fits rank and model.

    Another method than the saved one continues with the step count, and with the entries that
    both have.
    """
    if not isinstance(saved, Mapping) or not saved.keys() >= FIELDS:
        raise ValueError(
            "load_state_dict: state must be a result of state_dict() of Decentralized; load that "
            "of a plain model into model.module"
        )
    if saved["version"] != VERSION:
        raise ValueError(
            f"load_state_dict: version of the state must be {VERSION}, got "
            f"{saved['version']}; load it with the version of sparcml that saved it"
        )
    if saved["ranks"] != comm.size:
        raise ValueError(
            f"load_state_dict: world size of the state must be {comm.size}, got "
            f"{saved['ranks']}; to change it, save model.averaged() and start from that"
        )
    if saved["rank"] != comm.rank:
        raise ValueError(
            f"load_state_dict: state of rank {comm.rank} expected, got that of rank "
            f"{saved['rank']}; save one file per rank"
        )
    state: State = {key: on_host(value).copy() for key, value in saved["state"].items()}
    if STEP not in state or int(state.get(SIZE, -1)) != x.size:
        raise ValueError(
            f"load_state_dict: state must be of a model with {x.size} values, got "
            f"{state.get(SIZE)}"
        )
    return state if saved["method"] == describe(method) else method.init(x, state)


def describe(method: Method) -> str:
    """Return the settings of a method, by which saved states and ranks are compared."""
    return f"{method} ({method.topology.fingerprint:#x})"
