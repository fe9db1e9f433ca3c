"""Topologies whose weights are stored: irregular graphs, and matrices of the user."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .base import Topology
from .schedule import send_orders

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[int, float]


@dataclass(frozen=True, eq=False, repr=False)
class TableTopology(Topology):
    """A topology given by the nonzero weights of every rank.

    Attributes:
        rows: For each step and rank, the weights by rank in ascending order.
    """

    rows: tuple[tuple[Row, ...], ...]

    def _row(self, rank: int, step: int) -> Row:
        return self.rows[step][rank]

    def _receivers(self, rank: int, step: int) -> list[int]:
        return self._all_receivers[step][rank]

    @cached_property
    def _all_receivers(self) -> list[list[list[int]]]:
        return [
            send_orders([[j for j in row if j != rank] for rank, row in enumerate(rows)])
            for rows in self.rows
        ]

    def _identity(self) -> bytes:
        return b"table" + digest(self.rows, 64).encode()


def table_topology(
    function: str, name: str, steps: Sequence[Sequence[Row]]
) -> TableTopology:
    """Return the topology of these rows per step.

    Raises:
        ValueError: If not every rank can reach every other one within a period.
    """
    check_connected(function, steps)
    rows = tuple(tuple(dict(sorted(row.items())) for row in step) for step in steps)
    return TableTopology(name, len(rows[0]), len(rows), rows)


def digest(steps: Sequence[Sequence[Row]], length: int = 6) -> str:
    """Return a hash of all weights in hexadecimal, to tell topologies apart by name."""
    hashed = hashlib.sha256()
    for step in steps:
        for row in step:
            hashed.update(repr(sorted(row.items())).encode())
    return hashed.hexdigest()[:length]


def check_connected(function: str, steps: Sequence[Sequence[Row]]) -> None:
    """Raise unless data of every rank reaches every other one."""
    n = len(steps[0])
    forward: list[set[int]] = [set() for _ in range(n)]
    backward: list[set[int]] = [set() for _ in range(n)]
    for step in steps:
        for rank, row in enumerate(step):
            for j in row:
                forward[j].add(rank)
                backward[rank].add(j)
    for links in (forward, backward):
        reached = _reachable(links)
        if len(reached) < n:
            missing = next(rank for rank in range(n) if rank not in reached)
            ends = (0, missing) if links is forward else (missing, 0)
            raise ValueError(
                f"{function}: graph must be connected, got no path from rank {ends[0]} to rank "
                f"{ends[1]}; add an edge between the parts"
            )


def _reachable(links: Sequence[set[int]]) -> set[int]:
    """Return the ranks that rank 0 reaches."""
    reached, frontier = {0}, [0]
    while frontier:
        for j in links[frontier.pop()] - reached:
            reached.add(j)
            frontier.append(j)
    return reached
