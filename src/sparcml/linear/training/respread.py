"""Where the ranks of a run stood, for another number of ranks.

Only what ranks have for themselves is looked at; all else is the same on all of them. Names
are those of `SGDState.arrays` and `SCDState.arrays`, behind the number of a target: 0/measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]
    Respread = Callable[[Sequence[Arrays], int, int], dict[str, NDArray[Any]]]

STEPPED = ("measures", "method/")
DESCENDED = ("coordinates", "trust")


def bare(name: str) -> str:
    """A name without its target."""
    return name.partition("/")[2]


def stepped(parts: Sequence[Arrays], rank: int, ranks: int) -> dict[str, NDArray[Any]]:
    """SGD: what is owed and what was not yet counted keep their sums over all ranks.

    A rank stands for those before whose number is its own, modulo the ranks; a new one owes
    nothing. Gradients are summed, not averaged, so nothing has to be scaled.
    """
    mine = [parts[k] for k in range(rank, len(parts), ranks)]
    like = mine[0] if mine else parts[rank % len(parts)]
    return {name: _joined(bare(name), [p[name] for p in mine], like[name]) for name in like}


def _joined(name: str, found: list[NDArray[Any]], like: NDArray[Any]) -> NDArray[Any]:
    if name == "measures":  # the smallest held-out loss, and losses of the present pass
        return np.array([like[0], sum(each[1] for each in found)])
    kind = name.split("/")[1]
    if kind == "residual":
        return sum(found[1:], start=found[0].copy()) if found else np.zeros_like(like)
    if kind == "step" or not found:
        return like.copy()
    return np.mean(found, axis=0, dtype=np.float64).astype(like.dtype)


def descended(parts: Sequence[Arrays], rank: int, ranks: int) -> dict[str, NDArray[Any]]:
    """SCD: column j is on rank j modulo the ranks, as `partition_columns` divides them."""
    own: dict[str, NDArray[Any]] = {}
    everyone = [parts[k] for k in range(len(parts))]
    for name in everyone[0]:
        whole = np.empty(sum(part[name].size for part in everyone))
        for k, part in enumerate(everyone):
            whole[k :: len(everyone)] = part[name]
        own[name] = whole[rank::ranks].copy()
    return own
