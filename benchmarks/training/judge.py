"""What the rows of trainings say: medians, means over seeds, gains, and what they must reach."""

from __future__ import annotations

from statistics import mean, median
from typing import Any, NamedTuple

from .roster import NETWORKS

Row = dict[str, Any]


class Step(NamedTuple):
    """A method's step behind a link.

    Attributes:
        seconds: The median.
        compute: That of the same step with communication off, in the same job.
        sent: Bytes of a rank.
        measured: How many steps that is over.
    """

    seconds: float
    compute: float
    sent: float
    measured: int

    @property
    def exposed(self) -> float:
        """What communication, coding included, adds to a step."""
        return max(self.seconds - self.compute, 1e-6)


class Score(NamedTuple):
    """A method's result, over seeds.

    Attributes:
        score: The mean at the end.
        apart: The mean difference to dense runs of the same seeds; positive is better.
        within: Whether that is no worse than the network allows.
        seeds: How many.
        fewer: How many times fewer bytes than dense, over the whole run.
        sent: Bytes of a rank, the mean.
        steps: Of a run.
    """

    score: float
    apart: float
    within: bool
    seeds: int
    fewer: float
    sent: float
    steps: int


def step_of(row: Row) -> Step:
    """From a kept row."""
    seconds, alone = median(row["steps"]), median(row["compute"])
    return Step(seconds, alone, row["sent"], len(row["steps"]))


def steps_at(rows: list[Row], network: str, ranks: int, link: str) -> dict[str, Step]:
    """Each method's, in the order they are kept."""
    return {
        row["method"]: step_of(row)
        for row in rows
        if (row["network"], row["ranks"], row["link"]) == (network, ranks, link)
    }


def scores(rows: list[Row], network: str) -> dict[str, Score]:
    """Each method's, against dense runs of the same seeds; nothing without these."""
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
    """Steps and the mean score after them, over seeds."""
    mine = [r for r in rows if (r["network"], r["method"]) == (network, method)]
    if not mine:
        return []
    epochs = len(mine[0]["scores"])
    each = mine[0]["steps_made"] / epochs
    return [((e + 1) * each, mean(r["scores"][e] for r in mine)) for e in range(epochs)]


def until(points: list[tuple[float, float]], goal: float, *, higher: bool) -> float | None:
    """Steps after which a curve is at the goal for the first time; None if it never is."""
    sign = 1 if higher else -1
    return next((made for made, score in points if sign * (score - goal) >= 0), None)


def goal(network: str, dense: Score) -> float:
    """What must be reached: the dense score, less what the network allows."""
    about = NETWORKS[network]
    slack = about.within * (dense.score if about.relative else 1)
    return dense.score - slack if about.higher else dense.score + slack
