"""Evaluation of training rows: medians, means over seeds, speedups and targets."""

from __future__ import annotations

from statistics import mean, median
from typing import Any, NamedTuple

from .roster import NETWORKS

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


class Score(NamedTuple):
    """A method's result, over seeds.

    Attributes:
        score: Mean final score.
        apart: Mean difference to dense runs of the same seeds; positive is better.
        within: Whether the difference is within the tolerance of the network.
        seeds: Number of seeds.
        fewer: Compression ratio over the full run.
        sent: Mean bytes sent per rank.
        steps: Steps per run.
    """

    score: float
    apart: float
    within: bool
    seeds: int
    fewer: float
    sent: float
    steps: int


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


def scores(rows: list[Row], network: str) -> dict[str, Score]:
    """Return the score of each method that has dense runs of the same seeds."""
    here = [row for row in rows if row["network"] == network]
    dense = {row["seed"]: row for row in here if row["method"] == "dense"}
    found = {}
    for method in dict.fromkeys(row["method"] for row in here):
        mine = [r for r in here if r["method"] == method and r["seed"] in dense]
        if mine:
            found[method] = _score(network, mine, dense)
    return found


def _score(network: str, rows: list[Row], dense: dict[int, Row]) -> Score:
    about = NETWORKS[network]
    sign = 1 if about.higher else -1
    apart = mean(sign * (row["score"] - dense[row["seed"]]["score"]) for row in rows)
    if about.relative:
        apart /= mean(dense[row["seed"]]["score"] for row in rows)
    return Score(
        mean(row["score"] for row in rows),
        apart,
        apart >= -about.within,
        len(rows),
        mean(dense[row["seed"]]["sent"] / row["sent"] for row in rows),
        mean(row["sent"] for row in rows),
        rows[0]["steps_made"],
    )


def curve(rows: list[Row], network: str, method: str) -> list[tuple[float, float]]:
    """Return pairs of steps and mean score over seeds."""
    mine = [r for r in rows if (r["network"], r["method"]) == (network, method)]
    if not mine:
        return []
    epochs = len(mine[0]["scores"])
    each = mine[0]["steps_made"] / epochs
    return [((e + 1) * each, mean(r["scores"][e] for r in mine)) for e in range(epochs)]


def until(points: list[tuple[float, float]], goal: float, *, higher: bool) -> float | None:
    """Return the steps until a curve reaches the goal; None if it never does."""
    sign = 1 if higher else -1
    return next((made for made, score in points if sign * (score - goal) >= 0), None)


def goal(network: str, dense: Score) -> float:
    """Return the target: the dense score less the tolerance of the network."""
    about = NETWORKS[network]
    slack = about.within * (dense.score if about.relative else 1)
    return dense.score - slack if about.higher else dense.score + slack
