"""Random regular graph: every rank has the same number of random neighbours."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...validation import as_integer
from ..mixing import graph_weights
from .tables import TableTopology, table_topology

SWAPS = 10  # random swaps per edge
CACHED = 32


def random_regular(n: int, degree: int, seed: int = 0) -> TableTopology:
    """Return a random graph in which every rank has `degree` neighbours.

    All weights are 1 / (1 + degree). The gap does not vanish as n grows: it approaches
    1 - (1 + 2 sqrt(degree - 1)) / (degree + 1), which is 0.107 for degree 4.

    Args:
        n: Number of ranks; n times degree must be even.
        degree: Number of neighbours of each rank, from 2 to n - 1 (or n - 1 if that is less).
        seed: Random seed, the same on all ranks.
    """
    function = "random_regular"
    n = as_integer(function, "n", n, 1)
    degree = as_integer(function, "degree", degree, 0)
    seed = as_integer(function, "seed", seed, 0)
    if not min(2, n - 1) <= degree < n:
        raise ValueError(
            f"{function}: degree must be from {min(2, n - 1)} to {n - 1} for {n} connected "
            f"ranks, got {degree}"
        )
    if n * degree % 2:
        raise ValueError(
            f"{function}: n times degree must be even, got {n} and {degree}; every edge has two "
            f"ends"
        )
    return _build(n, degree, seed)


@lru_cache(maxsize=CACHED)
def _build(n: int, degree: int, seed: int) -> TableTopology:
    """Swap the ends of random pairs of edges of a regular graph, until it is connected."""
    rng = np.random.default_rng(seed)
    edges = _circulant(n, degree)
    name = f"random_regular({n}, {degree}, seed={seed})"
    while True:
        _swap(edges, rng, SWAPS * len(edges))
        neighbors: list[list[int]] = [[] for _ in range(n)]
        for i, j in edges:
            neighbors[i].append(j)
            neighbors[j].append(i)
        try:
            rows = graph_weights("random_regular", neighbors, "uniform")
            return table_topology("random_regular", name, [rows])
        except ValueError:
            continue  # rarely not connected


def _circulant(n: int, degree: int) -> list[tuple[int, int]]:
    """Return the edges of a regular graph: neighbours at distances 1, 2, ... and n / 2."""
    distances = list(range(1, degree // 2 + 1))
    edges = {tuple(sorted((i, (i + by) % n))) for by in distances for i in range(n)}
    if degree % 2:
        edges |= {(i, i + n // 2) for i in range(n // 2)}
    return sorted((i, j) for i, j in edges)


def _swap(edges: list[tuple[int, int]], rng: np.random.Generator, count: int) -> None:
    """Replace edges (a, b), (c, d) by (a, d), (c, b) where that creates no loop or double."""
    present = set(edges)
    picks = rng.integers(0, len(edges), (count, 2)).tolist() if edges else []
    flips = rng.integers(0, 2, count).tolist()
    for (first, second), flip in zip(picks, flips, strict=False):
        (a, b), (c, d) = edges[first], edges[second]
        if flip:
            c, d = d, c
        new = tuple(sorted((a, d))), tuple(sorted((c, b)))
        if len({a, b, c, d}) < 4 or new[0] in present or new[1] in present:
            continue
        present -= {edges[first], edges[second]}
        edges[first], edges[second] = (new[0][0], new[0][1]), (new[1][0], new[1][1])
        present |= {edges[first], edges[second]}
