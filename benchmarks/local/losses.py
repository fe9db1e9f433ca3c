"""Scores of local training beside those of the synchronous runs of the same seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import mean, stdev
from typing import Any, NamedTuple

from accuracy.saved import load

from .forms import SYNCHRONOUS
from .workloads import WORKLOADS

Row = dict[str, Any]
Key = tuple[str, str, int, int, float]  # network, form, every, workers, start

REFERENCE = {"gpt-one-worker": "gpt"}  # what its runs are compared with
DDP_RANKS = (2, 8)  # of the compressed runs beside them
COMPRESSED = "compressed DDP, `recommended`"


class Case(NamedTuple):
    """Runs that differ in the seed only.

    Attributes:
        network: Name of the workload.
        form: Name of the form.
        every: Inner steps per round.
        workers: Number of workers.
        start: Fraction of synchronous steps.
        seeds: Number of seeds.
        score: Mean score; None if a run diverged.
        difference: Mean difference to the synchronous run of the same seed, see `difference`.
        error: Its standard error; None with one seed.
        sent: Mean bytes that a rank sends.
    """

    network: str
    form: str
    every: int
    workers: int
    start: float
    seeds: int
    score: float | None
    difference: float
    error: float | None
    sent: float

    def text(self) -> str:
        """Return the difference, with its standard error."""
        if self.score is None:
            return "diverged"
        points = metric_of(self.network) == "points"
        factor, digits = (1, 2) if points else (100, 1)
        text = f"{factor * self.difference:+.{digits}f}"
        if self.error is not None:
            text += f" ± {factor * self.error:.{digits}f}"
        return f"{text} points" if points else f"{text} %"


def cases(rows: list[Row]) -> list[Case]:
    """Return the cases of saved rows, in the order of the first row of each."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        start = row["synchronous"] / WORKLOADS[row["network"]].steps
        key = (row["network"], row["form"], row["every"], row["workers"], start)
        groups[key].append(row)
    return [_case(key, found, rows) for key, found in groups.items()]


def compressed(network: str, rows: list[Row]) -> list[Case]:
    """Return the runs of the recommended method under DDP."""
    found = []
    for ranks in DDP_RANKS:
        runs = [row for row in _of(network, "recommended") if row["ranks"] == ranks]
        newest = [row for row in runs if row["built"] == runs[-1]["built"]]
        if newest:
            found.append(_case((network, COMPRESSED, 1, ranks, 0.0), newest, rows))
    return found


def synchronous(network: str, rows: list[Row] | None = None) -> dict[int, float]:
    """Return the scores of the synchronous runs by seed.

    They are those of the accuracy benchmark, or among the rows.
    """
    found = {row["seed"]: row["score"] for row in _of(network, "dense")}
    for row in rows or ():
        if row["network"] == network and row["form"] == SYNCHRONOUS:
            found.setdefault(row["seed"], row["score"])
    return found


def _of(network: str, method: str) -> list[Row]:
    work = WORKLOADS[network]
    return [
        row
        for row in load()
        if row["network"] == network
        and row["method"] == method
        and row["learning_rate"] == work.learning_rate
        and row["settings"] == work.settings
        and row["score"] is not None
    ]


def _case(key: Key, found: list[Row], rows: list[Row]) -> Case:
    network = key[0]
    dense = synchronous(REFERENCE.get(network, network), rows)
    sent = mean(row["sent"] for row in found)
    if any(row["score"] is None for row in found):
        return Case(*key, len(found), None, math.inf, None, sent)
    differences = [
        difference(network, row["score"], dense[row["seed"]])
        for row in found
        if row["seed"] in dense
    ]
    error = None
    if len(differences) > 1:
        error = stdev(differences) / math.sqrt(len(differences))
    score = mean(row["score"] for row in found)
    return Case(*key, len(found), score, mean(differences), error, sent)


def metric_of(network: str) -> str:
    """Return "points", "loss" or "perplexity"."""
    if WORKLOADS[network].higher_is_better:
        return "points"
    return "loss" if network.startswith("gpt") else "perplexity"


def difference(network: str, score: float, dense: float) -> float:
    """Return the relative difference of perplexities, or that of accuracies in points."""
    metric = metric_of(network)
    if metric == "points":
        return score - dense
    return (math.exp(score - dense) if metric == "loss" else score / dense) - 1
