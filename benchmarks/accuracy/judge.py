"""Differences to dense runs of the same seeds and batches, with standard errors."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from .aggregators import ring_bytes
from .jobs import rounded
from .roster import DENSE, ROSTER, Setting, built, label
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .jobs import Row
    from .workloads import Workload

EARLY = 300  # no score may be much worse from this step on
MIN_SEEDS = 3  # results of fewer are not shown


class Judged(NamedTuple):
    """A method's result, over seeds.

    Attributes:
        network: Name of the workload.
        method: Name in the roster.
        multiple: Multiple of the dense learning rate.
        ranks: World size.
        score: Mean final score; None if a run diverged.
        difference: Mean difference to dense runs of the same seeds; positive is better.
        error: Its standard error; NaN for one seed.
        within: Whether the difference is within the tolerance of the workload.
        worst: Worst difference of the mean validation curve to the dense one from step 300
            on, as a fraction of the dense score; NaN without such points.
        sent: Mean bytes sent per rank.
        ratio: Compression ratio over the full run.
        seeds: Number of seeds.
        seconds: Mean time of a run.
    """

    network: str
    method: str
    multiple: float
    ranks: int
    score: float | None
    difference: float
    error: float
    within: bool
    worst: float
    sent: float
    ratio: float
    seeds: int
    seconds: float

    @property
    def label(self) -> str:
        """Method and multiple."""
        return label(self.method, self.multiple)


def judge(rows: Sequence[Row], works: Mapping[str, Workload] = WORKLOADS) -> list[Judged]:
    """Return the results of all methods that have dense runs of the same seeds.

    Rows with other settings than the current ones are left out.
    """
    groups: dict[tuple[str, str, float, int, str], list[Row]] = {}
    for row in rows:
        work = works.get(row["network"])
        if work is not None and row["settings"] == work.settings:
            names = ("network", "method", "learning_rate", "ranks", "built")
            network, method, rate, ranks, built = (row[name] for name in names)
            groups.setdefault((network, method, rate, ranks, built), []).append(row)
    found = []
    for (network, method, rate, ranks, _), runs in groups.items():
        work = works[network]
        dense = groups.get((network, DENSE, rounded(work.learning_rate), 1, ""), [])
        by_seed = {row["seed"]: row for row in dense}
        pairs = [(row, by_seed[row["seed"]]) for row in runs if row["seed"] in by_seed]
        if pairs and _is_current(work, runs[0]):
            multiple = rounded(rate / work.learning_rate)
            found.append(_judged(work, network, method, multiple, ranks, pairs))
    return sorted(found, key=_order)


def complete(rows: Sequence[Row]) -> list[Judged]:
    """Return the results that have enough seeds."""
    return [row for row in judge(rows) if row.seeds >= MIN_SEEDS]


def _is_current(work: Workload, row: Row) -> bool:
    """Return whether the roster still builds the method that was run."""
    if (method := row["method"]) not in ROSTER:
        return False
    setting = Setting(work, row["ranks"], 0, row["learning_rate"])
    return bool(built(method, setting) == row["built"])


def _judged(
    work: Workload,
    network: str,
    method: str,
    multiple: float,
    ranks: int,
    pairs: Sequence[tuple[Row, Row]],
) -> Judged:
    differences = [difference(work, mine["score"], dense["score"]) for mine, dense in pairs]
    average, error = mean_and_error(differences)
    runs = [mine for mine, _ in pairs]
    scores = [row["score"] for row in runs]
    sent = mean(row["sent"] for row in runs)
    dense_bytes = mean(ring_bytes(row["values"], ranks) * row["steps"] for row in runs)
    return Judged(
        network,
        method,
        multiple,
        ranks,
        None if None in scores else mean(scores),
        average,
        error,
        average >= -work.tolerance,
        worst_after(work, pairs),
        sent,
        dense_bytes / sent if sent else 1.0,
        len(pairs),
        mean(row["seconds"] for row in runs),
    )


def difference(work: Workload, score: float | None, dense: float | None) -> float:
    """Return the difference to dense; positive is better, -inf if the run diverged."""
    if score is None:
        return -math.inf
    if dense is None:
        raise ValueError("difference: the dense run diverged; lower its learning rate")
    apart = score - dense if work.higher_is_better else dense - score
    return apart / abs(dense) if work.relative else apart


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which is NaN for fewer than two values."""
    average = sum(values) / len(values)
    if len(values) < 2 or not math.isfinite(average):
        return average, math.nan
    return average, stdev(values) / math.sqrt(len(values))


def worst_after(work: Workload, pairs: Sequence[tuple[Row, Row]]) -> float:
    """Return the worst relative difference of the mean curves from step 300 on."""
    sign = 1 if work.higher_is_better else -1
    if any(row["score"] is None for pair in pairs for row in pair):
        return -math.inf
    points = []
    for i, made in enumerate(pairs[0][0]["marks"]):
        if made >= EARLY:
            mine = mean(row["scores"][i] for row, _ in pairs)
            dense = mean(row["scores"][i] for _, row in pairs)
            points.append(sign * (mine - dense) / abs(dense))
    return min(points, default=math.nan)


def _order(judged: Judged) -> tuple[int, int, float, int]:
    networks, methods = list(WORKLOADS), list(ROSTER)
    place = networks.index(judged.network) if judged.network in networks else -1
    return place, methods.index(judged.method), judged.multiple, judged.ranks


def table(judged: Sequence[Judged], works: Mapping[str, Workload] = WORKLOADS) -> str:
    """Return a text table per workload."""
    lines = []
    for network in dict.fromkeys(row.network for row in judged):
        work = works[network]
        unit = "%" if work.relative else "points"
        limit = 100 * work.tolerance if work.relative else work.tolerance
        lines.append(f"\n{work.title}, tolerance {limit:g} {unit} ({work.settings})")
        lines.append(
            f"  {'method':24}{'ranks':>6}{'score':>9}{'difference':>19}{'met':>5}"
            f"{'worst from 300':>16}{'MB/rank':>10}{'ratio':>8}{'seeds':>6}{'s':>6}"
        )
        scale = 100 if work.relative else 1
        lines += [_line(row, scale) for row in judged if row.network == network]
    return "\n".join(lines)


def _line(row: Judged, scale: float) -> str:
    score = "diverged" if row.score is None else f"{row.score:.3f}"
    apart = f"{scale * row.difference:+.2f} ± {scale * row.error:.2f}"
    return (
        f"  {row.label:24}{row.ranks:6}{score:>9}{apart:>19}"
        f"{'yes' if row.within else 'no':>5}{row.worst:>16.1%}{row.sent / 1e6:10.1f}"
        f"{row.ratio:8.1f}{row.seeds:6}{row.seconds:6.0f}"
    )
