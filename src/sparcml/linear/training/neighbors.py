"""Training with neighbours by `sparcml fit`: its options, and checkpoints of other world sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...decentralized import by_name
from ...decentralized.parse import parse_method
from ..solvers.sgd_state import INTERCEPT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ...decentralized import Method
    from .config import TrainingConfig

    Arrays = Mapping[str, NDArray[Any]]


def check_neighbors(config: TrainingConfig, ranks: int | None) -> None:
    """Raise ValueError for options that are invalid or have no effect with a topology.

    Args:
        config: The options; the topology is given.
        ranks: Number of ranks, if it is known.
    """
    remedies = {
        "l1": "use --l2",
        "momentum": f"use --method dpsgd:{config.momentum:g}",
        "algorithm": "ranks send to their neighbours only",
        "communication": "ranks send to their neighbours only",
    }
    given = {
        "l1": config.l1 > 0,
        "momentum": config.momentum > 0,
        "algorithm": config.algorithm != "auto",
        "communication": config.communication != "sparse",
    }
    for name, remedy in remedies.items():
        if given[name]:
            raise ValueError(f"fit: --{name} must be left out with --topology; {remedy}")
    if ranks == 1:
        raise ValueError("fit: --topology needs several ranks; add -n")
    method = neighbor_method(config, ranks)
    if config.checkpoint_every and method is not None and not method.is_synchronous:
        raise ValueError(
            f"fit: --checkpoint-every must be left out with --method {config.method}, whose "
            f"averages are in flight within an epoch; there is a checkpoint after each epoch"
        )


def neighbor_method(config: TrainingConfig, ranks: int | None) -> Method | None:
    """Return the method of `--topology` for a number of ranks, or None.

    Raises:
        ValueError: If the topology is not one for these ranks, or the method excludes it.
    """
    if config.topology is None or ranks is None:
        return None
    try:
        topology = by_name(config.topology, ranks)
        return parse_method(
            config.method or "dpsgd", topology, config.compress, config.seed
        )
    except (TypeError, ValueError) as error:
        reason = str(error).removeprefix("by_name: ").removeprefix("parse_method: ")
        for name in ("topology", "method", "compress"):
            reason = f"--{reason}" if reason.startswith(f"{name} ") else reason
        raise ValueError(f"fit: {reason}") from None


def reshard_neighbors(
    config: TrainingConfig,
    method: Method,
    parts: Sequence[Arrays],
    rank: int,
    ranks: int,
) -> dict[str, NDArray[Any]]:
    """Return a rank's arrays after a change of the world size: the mean of the models.

    Args:
        config: The options.
        method: The method on the new topology.
        parts: Arrays of all old ranks.
        rank: The new rank.
        ranks: The new number of ranks.
    """
    old = neighbor_method(config, len(parts))
    assert old is not None  # since there is a new one
    every = [dict(parts[k]) for k in range(len(parts))]
    own: dict[str, NDArray[Any]] = {}
    for target in sorted({name.partition("/")[0] for name in every[0]}):
        models = [_vector(part, target) for part in every]
        prefix = f"{target}/method/"
        states = [
            {n.removeprefix(prefix): a for n, a in part.items() if n.startswith(prefix)}
            for part in every
        ]
        size = int(states[0]["size"])
        _, x, state = old.reshard([m[:size] for m in models], states, method.topology)
        numbers = every[0][f"{target}/numbers"].copy()
        features = every[0][f"{target}/weights"].size
        if size > features:
            numbers[INTERCEPT] = x[-1]
        pending = sum(part[f"{target}/pending"] for part in every[rank::ranks])
        own |= {
            f"{target}/weights": x[:features],
            f"{target}/numbers": numbers,
            f"{target}/pending": np.atleast_1d(np.asarray(pending, np.float64)),
            **{f"{prefix}{name}": array for name, array in state.items()},
        }
    return own


def _vector(part: Arrays, target: str) -> NDArray[Any]:
    """Return the weights and the intercept of a target."""
    weights = part[f"{target}/weights"]
    return np.append(weights, weights.dtype.type(part[f"{target}/numbers"][INTERCEPT]))
