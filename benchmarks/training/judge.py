"""Evaluation of the rows of steps: medians, and exposed communication."""

from __future__ import annotations

from statistics import median
from typing import Any, NamedTuple

Row = dict[str, Any]


class Step(NamedTuple):
    """A method's step on a link.

    Attributes:
        seconds: Median time.
        compute: Median time of the same step with communication off, in the same job.
        sent: Bytes sent per rank.
        measured: Number of measured steps.
    """

    seconds: float
    compute: float
    sent: float
    measured: int

    @property
    def exposed(self) -> float:
        """Time that communication, including encoding, adds to a step."""
        return max(self.seconds - self.compute, 1e-6)


def step_of(row: Row) -> Step:
    """Return the step of a saved row."""
    seconds, alone = median(row["steps"]), median(row["compute"])
    return Step(seconds, alone, row["sent"], len(row["steps"]))


def steps_at(rows: list[Row], network: str, ranks: int, link: str) -> dict[str, Step]:
    """Return the step of each method, in the order of the rows."""
    return {
        row["method"]: step_of(row)
        for row in rows
        if (row["network"], row["ranks"], row["link"]) == (network, ranks, link)
    }
