"""Replicas: copies of the neighbours' vectors that compressed differences keep up to date.

A rank adds what it sends to its own vector, and each receiver adds the same to its copy, in the
same arithmetic. So all copies of a rank's vector are the same bits, and no full vector is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compression import add_to
from .state import key

if TYPE_CHECKING:
    from ..stream import Stream
    from ..stream.arrays import Values
    from .state import State
    from .step import Step

REPLICA = "replica"


def load_replicas(call: Step, x: Values, state: State) -> dict[int, Values]:
    """Return the copies of the neighbours' vectors. Collective if the state has none.

    If all ranks have the same x, as at the start of a training, the copies are x. If not, such as
    after a change of topology, every rank sends its x once, uncompressed.
    """
    replicas = {
        r: state[key(REPLICA, r)] for r in call.neighbors if key(REPLICA, r) in state
    }
    if len(replicas) == len(call.neighbors):
        return replicas
    if replicas:
        raise ValueError(
            f"step: state must have the replicas of ranks {call.neighbors}, got those of "
            f"{sorted(replicas)}; call change_topology if the topology changes"
        )
    if call.is_equal_everywhere(x):
        return dict.fromkeys(call.neighbors, x)
    return dict(call.exchange(x))


def update_replicas(
    call: Step, replicas: dict[int, Values], received: dict[int, Stream], new: State
) -> dict[int, Values]:
    """Return the copies plus what their owners sent; they go to the new state."""
    updated = {
        rank: add_to(values, received[rank], overwrite=call.may_overwrite(values))
        for rank, values in replicas.items()
    }
    save_replicas(updated, new)
    return updated


def save_replicas(replicas: dict[int, Values], new: State) -> None:
    """Write the copies to a state."""
    new.update((key(REPLICA, rank), values) for rank, values in replicas.items())
