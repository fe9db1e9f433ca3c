"""Topologies by name, for the command line and settings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import topologies

if TYPE_CHECKING:
    from collections.abc import Callable

    from .topologies import Topology

MATRIX_SUFFIXES = (".npy", ".csv", ".txt")


def by_name(text: str, n: int) -> Topology:
    """Return the topology of a name such as "ring", "torus:4x8" or "base_graph:2".

    Args:
        text: A name of `NAMES`, with an option after a colon where there is one, or a file
            with a mixing matrix (.npy, or numbers separated by commas in .csv and .txt).
        n: Number of ranks.

    Raises:
        ValueError: If the name or the option is unknown, or a matrix is for other ranks.
    """
    if text.endswith(MATRIX_SUFFIXES):
        return _from_file(Path(text), n)
    name, _, option = text.partition(":")
    if name not in NAMES:
        raise ValueError(
            f"by_name: topology must be one of {', '.join(NAMES)} or a matrix in an .npy file, got "
            f"{text!r}"
        )
    return NAMES[name](n, option)


def _plain(build: Callable[[int], Topology]) -> Callable[[int, str], Topology]:
    def built(n: int, option: str) -> Topology:
        if option:
            raise ValueError(
                f"by_name: topology {build.__name__} has no option, got {option!r}"
            )
        return build(n)

    return built


def _torus(n: int, option: str) -> Topology:
    """Return the torus of the given sides, such as 4x8, or the one closest to a square."""
    rows = max(side for side in range(1, math.isqrt(max(1, n)) + 1) if n % side == 0)
    if not option:
        return topologies.torus(rows, n // rows)
    sides = option.split("x")
    if not all(side.isdecimal() for side in sides) or math.prod(map(int, sides)) != n:
        raise ValueError(
            f"by_name: topology torus must have sides with the product {n}, such as "
            f"torus:{rows}x{n // rows}, got {option!r}"
        )
    return topologies.torus(*map(int, sides))


def _with_degree(
    build: Callable[[int, int], Topology], default: int
) -> Callable[[int, str], Topology]:
    def built(n: int, option: str) -> Topology:
        if option and not option.isdecimal():
            example = f"{build.__name__}:{default}"
            raise ValueError(
                f"by_name: topology {build.__name__} must have a degree such as {example}, got "
                f"{option!r}"
            )
        return build(n, int(option or default))

    return built


def _from_file(path: Path, n: int) -> Topology:
    try:
        matrix = (
            np.load(path, allow_pickle=False)
            if path.suffix == ".npy"
            else np.loadtxt(path, delimiter=",", ndmin=2)
        )
    except (OSError, ValueError) as error:
        raise ValueError(f"topology: {str(path)!r} is not a matrix: {error}") from None
    found = topologies.from_matrix(matrix)
    if found.size != n:
        raise ValueError(
            f"topology: {str(path)!r} must be for {n} ranks, got a matrix of {found.size}"
        )
    return found


NAMES: dict[str, Callable[[int, str], Topology]] = {
    "ring": _plain(topologies.ring),
    "torus": _torus,
    "star": _plain(topologies.star),
    "complete": _plain(topologies.complete),
    "exponential": _plain(topologies.exponential),
    "one_peer_exponential": _plain(topologies.one_peer_exponential),
    "base_graph": _with_degree(topologies.base_graph, 1),
    "random_regular": _with_degree(topologies.random_regular, 4),
}
