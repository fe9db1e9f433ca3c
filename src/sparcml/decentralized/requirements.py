"""Checks of what a method's theorem requires of its topology and its compressor."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..quantize import Quantizer
from ..sparsify import Sparsifier
from ..validation import check_integer

if TYPE_CHECKING:
    from .topologies import Topology

SAMPLE = 1 << 16  # values, to count what a sparsifier keeps


def require_topology(method: object, topology: Any) -> None:
    """Raise a TypeError unless this is a topology."""
    if not hasattr(topology, "weights") or not hasattr(topology, "is_doubly_stochastic"):
        raise TypeError(
            f"{_name(method)}: topology must be one of sparcml.decentralized such as "
            f"dec.ring(8), got {type(topology).__name__}"
        )


def require_seed(method: object) -> None:
    """Raise a TypeError if a method has a seed that is not an integer."""
    if hasattr(method, "seed"):
        check_integer(method, "seed")


def require_doubly_stochastic(method: object, topology: Topology) -> None:
    """Raise unless rows and columns add up to 1, so that mixing keeps the mean."""
    if not topology.is_doubly_stochastic:
        raise ValueError(
            f"{_name(method)}: topology must be doubly stochastic to keep the mean, got "
            f"{topology.name}; make rows and columns add up to 1, or only the columns, for "
            f"PushSum"
        )


def require_column_stochastic(method: object, topology: Topology) -> None:
    """Raise unless columns add up to 1, so that mixing keeps the sum."""
    if not topology.is_column_stochastic:
        raise ValueError(
            f"{_name(method)}: topology must be column-stochastic to keep the sum, got "
            f"{topology.name}; divide each column of its matrix by the column's sum"
        )


def require_symmetric(method: object, topology: Topology) -> None:
    """Raise unless the matrix of every step is symmetric."""
    if not topology.is_symmetric:
        raise ValueError(
            f"{_name(method)}: topology must be symmetric, got {topology.name}; use "
            f"GradientTracking, DPSGD or PushSum for directed graphs"
        )


def require_static(method: object, topology: Topology) -> None:
    """Raise if the matrix changes from step to step."""
    if topology.period != 1:
        raise ValueError(
            f"{_name(method)}: topology must be the same in every step, got "
            f"{topology.name} with a period of {topology.period}; use DPSGD, PushSum or "
            f"GradientTracking, or a static graph such as dec.exponential({topology.size})"
        )


def require_tree(method: object, topology: Topology) -> None:
    """Raise unless the graph is a tree, with edges in both directions."""
    edges = {(r, peer) for r in range(topology.size) for peer in topology.neighbors(r)}
    if {(j, i) for i, j in edges} != edges or len(edges) != 2 * (topology.size - 1):
        raise ValueError(
            f"{_name(method)}: topology must be a tree, got {topology.name} with "
            f"{len(edges) // 2} edges between {topology.size} ranks; use "
            f"dec.from_networkx(tree), or dec.star({topology.size})"
        )


def require_compressor(method: object, compress: Any, *, unbiased: bool) -> None:
    """Raise unless this is a sparsifier or a quantizer, or None; unbiased if required."""
    if compress is None:
        return
    if not isinstance(compress, Sparsifier | Quantizer):
        raise TypeError(
            f"{_name(method)}: compress must be a sparsifier or a quantizer such as "
            f"sparcml.QSGD(bits=4), got {compress!r}"
        )
    if unbiased and compress.biased:
        raise ValueError(
            f"{_name(method)}: compress must be unbiased, got {compress}; use Choco, which "
            f"converges with any compressor, or QSGD"
        )


def require_small_error(method: object, compress: Any) -> None:
    """Raise for sparsifiers whose error is larger than what they compress.

    n times a random 1 / n of the entries has a squared error of n - 1 times the squared norm of
    the vector. Errors then grow from step to step.
    """
    count = compress.count(SAMPLE) if isinstance(compress, Sparsifier) else None
    if count is not None and 2 * count < SAMPLE:
        raise ValueError(
            f"{_name(method)}: compress must keep at least half of the entries, got "
            f"{compress}, whose errors would grow from step to step; use Choco, which "
            f"converges with any compressor, or QSGD"
        )


@lru_cache(maxsize=64)  # simulated ranks construct the same method
def two_coloring(topology: Topology) -> tuple[bool, ...] | None:
    """Return a color per rank, different for neighbours; None if there is none.

    Rank 0 is True.
    """
    colors = {0: True}
    waiting = [0]
    while waiting:
        rank = waiting.pop()
        for peer in _peers(topology, rank):
            if peer not in colors:
                colors[peer] = not colors[rank]
                waiting.append(peer)
            elif colors[peer] == colors[rank]:
                return None
    return tuple(colors[rank] for rank in range(topology.size))


def _peers(topology: Topology, rank: int) -> list[int]:
    """Return the ranks that a rank is connected with in any step, ascending."""
    steps = range(topology.period)
    peers = itertools.chain(
        *(topology.neighbors(rank, step) for step in steps),
        *(topology.receivers(rank, step) for step in steps),
    )
    return sorted(set(peers) - {rank})


def _name(method: object) -> str:
    return type(method).__name__
