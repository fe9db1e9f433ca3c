"""Rows of an allreduce: its times, its bytes, and the lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SPARSE = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "ssar_ring",
)
SHORT = {
    "ssar_recursive_double": "recursive doubling",
    "ssar_split_allgather": "SSAR split",
    "dsar_split_allgather": "DSAR split",
    "ssar_ring": "sparse ring",
    "ring": "dense ring",
    "native": "dense, the engine's",
    "gloo_allreduce": "dense, gloo",
    "mpi_allreduce": "dense, MPI",
}
DENSE = ("ring", "native", "gloo_allreduce", "mpi_allreduce")

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One point of a figure.

    Attributes:
        how: "emulated" or "simulated".
        network: Name of the network.
        ranks: P.
        size: N, the number of float32 values.
        density: Density per rank; 1 for dense algorithms.
        algorithm: Name of the algorithm.
    """

    how: str
    network: str
    ranks: int
    size: int
    density: float
    algorithm: str

    @property
    def stored(self) -> int:
        """Entries per rank."""
        return max(1, round(self.size * self.density))

    def row(
        self,
        seconds: Sequence[float],
        *,
        sets: int,
        wire: int | None,
        filled: float,
        least: float,
        wrong: int,
    ) -> Row:
        """Return the row to save.

        Args:
            seconds: Times of the runs, of the slowest rank each.
            sets: Number of data sets.
            wire: Bytes sent by the busiest rank, if they can be counted.
            filled: Mean nnz of the sum over the sets.
            least: Lower bound in seconds of a lossless allreduce.
            wrong: Number of wrong entries.
        """
        p25, p50, p75 = (float(q) for q in np.quantile(seconds, [0.25, 0.5, 0.75]))
        return {
            **vars(self),
            "stored": self.stored,
            "filled": filled,
            "sets": sets,
            "runs": len(seconds),
            "wire": wire,
            "p25": 1e6 * p25,
            "p50": 1e6 * p50,
            "p75": 1e6 * p75,
            "least": 1e6 * least,
            "percent": 100 * least / p50,
            "wrong": wrong,
        }


def chosen(rows: Sequence[Row], **where: object) -> list[Row]:
    """Return the rows with these properties, by density and ranks."""
    found = [row for row in rows if all(row.get(k) == v for k, v in where.items())]
    return sorted(found, key=lambda row: (row["density"], row["ranks"]))


def first(rows: Sequence[Row], names: Sequence[str] = SPARSE) -> str:
    """Return the fastest of these algorithms."""
    able = [row for row in rows if row["algorithm"] in names]
    return str(min(able, key=lambda row: row["p50"])["algorithm"])


def dense(rows: Sequence[Row], ranks: int) -> Row:
    """Return the fastest dense allreduce on a number of ranks, for any density."""
    able = [r for r in rows if r["algorithm"] in DENSE and r["ranks"] == ranks]
    return min(able, key=lambda row: row["p50"])
