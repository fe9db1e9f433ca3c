"""Means over seeds, and what they say about scaling."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from .plan import BATCHES, LARGE, LOWER, SEEDS, WARM_UP
from .recipes import MIDDLE, RECIPES

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
PERFECT = 1.5  # times the images of the smallest batch at most
FLAT = 1.25  # times fewer steps at most, for twice the batch


class Mean(NamedTuple):
    """Mean of several seeds and its standard error."""

    value: float
    error: float


def averaged(values: Sequence[float | None]) -> Mean | None:
    """Return mean and standard error; None if a seed is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(SEEDS) or len(known) < len(values):
        return None
    return Mean(mean(known), stdev(known) / math.sqrt(len(known)))


def of_case(
    rows: list[Row],
    recipe: str,
    batch: int,
    multiple: float = 1.0,
    warm_up: int = WARM_UP,
    *,
    compressed: bool = False,
    part: str = "steps",
) -> list[Row]:
    """Return the rows of a case, one per seed."""
    wanted = (part, recipe, batch, warm_up, compressed)
    keys = ("part", "recipe", "batch", "warm_up", "compressed")
    return [
        row
        for row in rows
        if tuple(row[key] for key in keys) == wanted
        and math.isclose(row["multiple"], multiple, rel_tol=1e-4)
    ]


def steps(rows: list[Row], recipe: str, batch: int, **settings: Any) -> Mean | None:
    """Return the steps to the target; None if it was missed."""
    return averaged([row["steps"] for row in of_case(rows, recipe, batch, **settings)])


def curve(rows: list[Row], recipe: str, **settings: Any) -> dict[int, Mean]:
    """Return the steps by batch size, where the target was reached by all seeds."""
    found = {batch: steps(rows, recipe, batch, **settings) for batch in BATCHES}
    return {batch: point for batch, point in found.items() if point is not None}


def best_curve(rows: list[Row], recipe: str) -> dict[int, Mean]:
    """Return the steps at the best of the rule's learning rate and lower ones."""
    found: dict[int, Mean] = {}
    for multiple in (1.0, *LOWER):
        for batch, point in curve(rows, recipe, multiple=multiple).items():
            if multiple == 1 or batch >= LARGE:
                found[batch] = min(point, found.get(batch, point))
    return dict(sorted(found.items()))


def perfect_to(points: dict[int, Mean]) -> int:
    """Return the largest batch up to which the images used grow by at most `PERFECT`."""
    last = first = BATCHES[0]
    for batch in BATCHES:
        if first not in points or batch not in points:
            break
        if points[batch].value * batch > PERFECT * points[first].value * first:
            break
        last = batch
    return last


def last_gain(points: dict[int, Mean]) -> float:
    """Return the factor of steps that the last doubling saves; infinity if unknown."""
    before, last = (points.get(batch) for batch in BATCHES[-2:])
    return before.value / last.value if before and last else math.inf


def reach(points: dict[int, Mean]) -> int:
    """Return the largest batch with which the target was reached."""
    return max(points, default=0)


def chosen_rate(rows: list[Row], recipe: str) -> float:
    """Return the smallest rate within one standard error of the fewest steps at the middle."""
    points: dict[float, Mean] = {}
    for row in rows:
        if (row["part"], row["recipe"], row["batch"]) == ("steps", recipe, MIDDLE):
            point = steps(rows, recipe, MIDDLE, multiple=row["multiple"])
            if point is not None:
                points[row["multiple"] * RECIPES[recipe].rate] = point
    least = min(points.values())
    return min(r for r, p in points.items() if p.value <= least.value + least.error)


def slower(rows: list[Row], recipe: str) -> dict[int, float]:
    """Return the steps with compression relative to those without; infinity if missed."""
    found = {}
    for batch in BATCHES:
        dense = steps(rows, recipe, batch)
        if of_case(rows, recipe, batch, compressed=True) and dense is not None:
            point = steps(rows, recipe, batch, compressed=True)
            found[batch] = math.inf if point is None else point.value / dense.value
    return found
