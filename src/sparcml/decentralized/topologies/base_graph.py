"""Base-(k+1) graph: a full average after a few steps, for any number of ranks.

With b = degree + 1, a number of ranks whose prime factors are all at most b is averaged like a
number with these digits: in step l the ranks that differ in digit l only average in groups
(`_hyper`). Any other number is written in base b (`_simple`): parts of a power of b each average
inside, then each rank of a smaller part averages with ranks of the next larger one, whose
blocks average once more. `_steps` combines both.

Reference: Takezawa, Sato, Bao, Niwa, Yamada: Beyond Exponential Graph: Communication-Efficient
Topologies for Decentralized Learning via Finite-time Convergence, NeurIPS 2023.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

from ...validation import as_integer
from .tables import TableTopology, table_topology

Edge = tuple[int, int, float]  # two ranks and the weight that each gives to the other
Step = list[Edge]
CACHED = 32


def base_graph(n: int, degree: int = 1) -> TableTopology:
    """Return the base-(degree + 1) graph of n ranks, whose period is a full average.

    A rank has at most `degree` neighbours in a step. The matrices are symmetric, and the period
    is at most 2 log(n) / log(degree + 1) + 2 steps.

    Args:
        n: Number of ranks.
        degree: Largest number of neighbours per step. 1 pairs the ranks.
    """
    n = as_integer("base_graph", "n", n, 1)
    degree = as_integer("base_graph", "degree", degree, 1)
    return _build(n, degree)


@lru_cache(maxsize=CACHED)
def _build(n: int, degree: int) -> TableTopology:
    steps = []
    for edges in _steps(list(range(n)), degree + 1) or [[]]:
        rows: list[dict[int, float]] = [{} for _ in range(n)]
        for i, j, weight in edges:
            rows[i][j] = rows[j][i] = weight
        for rank, row in enumerate(rows):
            others = set(row.values())
            own = 1 - math.fsum(row.values())
            # In a group all weights are equal, but 1 - 2 / 3 is not 1 / 3 in floating point.
            row[rank] = others.pop() if others == {1 / (1 + len(row))} else own
        steps.append(rows)
    return table_topology("base_graph", f"base_graph({n}, degree={degree})", steps)


def _steps(ranks: list[int], b: int) -> list[Step]:
    """Return the steps for n = p q, with p the largest factor that `_hyper` can average.

    p runs of q consecutive ranks are averaged by `_simple` at the same time, then the q sets of
    ranks at the same place of their runs by `_hyper`.
    """
    simple = _simple(ranks, b)
    p = _smooth_part(len(ranks), b)
    q = len(ranks) // p
    runs = [_simple(ranks[start : start + q], b) for start in range(0, len(ranks), q)]
    sets = [_hyper(ranks[place::q], b) for place in range(q)]
    combined = _parallel(runs) + _parallel(sets)
    return simple if len(simple) < len(combined) else combined


def _simple(ranks: list[int], b: int) -> list[Step]:
    """Return the steps for any number of ranks, written in base b."""
    if _smooth_part(len(ranks), b) == len(ranks):
        return _hyper(ranks, b)
    parts = _parts(ranks, b)
    inside = [_hyper([r for block in part for r in block], b) for part in parts]
    blocks = [_parallel([_hyper(block, b) for block in part]) for part in parts]
    first = len(inside[0])
    count = first + 1 + len(blocks[0])
    steps: list[Step] = [[] for _ in range(count)]
    for step in range(first):
        for each in inside:
            steps[step] += _cycle(each, step)
    for s in range(len(parts) - 1):
        steps[first + s] += _join(parts, s, b)
    for number, each in enumerate(blocks):
        start = first + min(number + 1, len(parts) - 1)  # after the part has been joined
        for step in range(start, count):
            steps[step] += _cycle(each, step - start)
    return steps


def _parts(ranks: list[int], b: int) -> list[list[list[int]]]:
    """Cut the ranks by the digits of their number: a part has `digit` blocks of b^p ranks."""
    parts, start = [], 0
    power = 1
    while power * b <= len(ranks):
        power *= b
    while power:
        digit = (len(ranks) - start) // power
        if digit:
            ends = range(start + power, start + digit * power + 1, power)
            parts.append([ranks[end - power : end] for end in ends])
            start += digit * power
        power //= b
    return parts


def _join(parts: list[list[list[int]]], s: int, b: int) -> Step:
    """Average every rank of the parts after s with one rank of every block of part s."""
    blocks = parts[s]
    later = [rank for part in parts[s + 1 :] for block in part for rank in block]
    size = sum(map(len, blocks))
    weight = size / (size + len(later)) / len(blocks)
    step: Step = []
    unused = []
    for block in blocks:
        # From the end, so that the ranks that are left over are consecutive.
        step += [(rank, block[-1 - i], weight) for i, rank in enumerate(later)]
        unused += block[: len(block) - len(later)]
    for start in range(0, len(unused) - b + 1, b):
        step += _group(unused[start : start + b])
    return step


def _hyper(ranks: list[int], b: int) -> list[Step]:
    """Return the steps for a number of ranks that is a product of factors up to b."""
    steps, stride = [], 1
    for factor in _factors(len(ranks), b):
        step: Step = []
        for start in range(len(ranks)):
            if start // stride % factor == 0:
                step += _group(ranks[start : start + stride * factor : stride])
        steps.append(step)
        stride *= factor
    return steps


@cache
def _factors(n: int, b: int) -> tuple[int, ...]:
    """Return the fewest factors from 2 to b with the product n; the largest first."""
    if n == 1:
        return ()
    choices = [(f, *_factors(n // f, b)) for f in range(min(n, b), 1, -1) if n % f == 0]
    return min(choices, key=len)


def _smooth_part(n: int, b: int) -> int:
    """Return the largest factor of n that has no prime factor above b."""
    part = 1
    for factor in range(2, b + 1):
        while n % factor == 0:
            part, n = part * factor, n // factor
    return part


def _group(ranks: list[int]) -> Step:
    """Return the edges of a full average of a few ranks."""
    return [(i, j, 1 / len(ranks)) for k, i in enumerate(ranks) for j in ranks[k + 1 :]]


def _parallel(sequences: list[list[Step]]) -> list[Step]:
    """Return the steps of several sequences of the same length at the same time."""
    return [
        [edge for step in steps for edge in step] for steps in zip(*sequences, strict=True)
    ]


def _cycle(steps: list[Step], number: int) -> Step:
    return steps[number % len(steps)] if steps else []
