"""Lazy topologies: every rank keeps half of its own data."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Topology


@dataclass(frozen=True, eq=False, repr=False)
class LazyTopology(Topology):
    """The matrices (I + W) / 2 of another topology.

    Eigenvalues become (1 + lambda) / 2: none is negative, and the gap is about halved.
    """

    inner: Topology

    def _row(self, rank: int, step: int) -> dict[int, float]:
        row = {j: weight / 2 for j, weight in self.inner._row(rank, step).items()}
        row[rank] = row.get(rank, 0.0) + 0.5
        return {j: row[j] for j in sorted(row)}

    def _receivers(self, rank: int, step: int) -> list[int]:
        return self.inner._receivers(rank, step)

    def _identity(self) -> bytes:
        return b"lazy" + self.inner._identity()
