"""Rows of the planner's estimates for a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness import plugins  # noqa: F401  # registers Ok-Topk

from sparcml.aggregate.planning import planned_methods
from sparcml.planning.models import model
from sparcml.planning.plan import Plan, plan

if TYPE_CHECKING:
    from .base import Row


def planned(
    name: str,
    ranks: int,
    network: str,
    ratio: float = 0.005,
    compute: float | None = None,
) -> list[Row]:
    """Return each method with its best collective, and its time by the links only.

    `links` is the step without the time for selecting, encoding and adding.
    """
    found = model(name)
    seconds = found.step if compute is None else compute
    assert seconds is not None
    p = plan(found, ranks, network, seconds, methods=planned_methods((ratio,)))
    links = _links(p)
    return [
        {
            "model": name,
            "ranks": ranks,
            "network": network,
            "compute": seconds,
            "method": row.method,
            "collective": row.collective,
            "step": row.step,
            "speedup": row.speedup,
            "links": links[row.method],
            "links_speedup": links["dense"] / links[row.method],
        }
        for row in p.bests
    ]


def _links(p: Plan) -> dict[str, float]:
    def seconds(row: tuple[str, str]) -> float:
        (c,) = [c for c in p.candidates if c.name == row[0]]
        takes = c.cost(row[1], p.ranks, p.network)
        return p.compute + replace(takes, work=0.0).seconds(p.network)

    return {
        c.name: min(seconds((c.name, name)) for name in c.algorithms) for c in p.candidates
    }


def one(rows: list[Row], method: str, **where: object) -> Row:
    """Return the row of a method in one case."""
    (found,) = [
        row
        for row in rows
        if row["method"] == method and all(row[k] == v for k, v in where.items())
    ]
    return found
