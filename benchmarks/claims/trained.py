"""Shared part of the claims on training: rows of steps and rows of accuracy.

The accuracy benchmark imports torch, so it is imported only where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tables import newest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accuracy.judge import Judged

    from .base import Row

DENSE = "dense"
STEPS, ACCURACY = "steps", "accuracy"


def steps_of(methods: Sequence[str], network: str) -> list[Row]:
    """Return the rows of steps of plain DDP and of some methods on a network."""
    kept = newest("training-steps")
    if kept is None:
        raise SystemExit("no steps are saved; run: make bench-training")
    return [
        row | {"part": STEPS}
        for row in kept["rows"]
        if row["method"] in (DENSE, *methods) and row["network"] == network
    ]


def runs_of(methods: Sequence[str], networks: Iterable[str]) -> list[Row]:
    """Return the rows of accuracy of some methods, and of dense at its chosen rate."""
    from accuracy.jobs import rounded
    from accuracy.saved import load
    from accuracy.workloads import WORKLOADS

    chosen = {name: rounded(WORKLOADS[name].learning_rate) for name in networks}
    return [
        row | {"part": ACCURACY}
        for row in load()
        if (row["method"] in methods and row["network"] in chosen)
        or (row["method"] == DENSE and row["learning_rate"] == chosen.get(row["network"]))
    ]


def part_of(rows: list[Row], part: str) -> list[Row]:
    """Return the rows of accuracy, or those of steps."""
    return [row for row in rows if row["part"] == part]


def judged(rows: list[Row]) -> list[Judged]:
    """Return the results of all methods but dense that have enough seeds."""
    from accuracy.judge import complete

    found = complete(part_of(rows, ACCURACY))
    return [row for row in found if row.method != DENSE]


def unfinished(missing: Iterable[str]) -> str:
    """Describe the results that have too few seeds."""
    from accuracy.judge import MIN_SEEDS

    return f"not complete: fewer than {MIN_SEEDS} seeds of {', '.join(missing)}"


def result(row: Judged) -> str:
    """Describe difference, standard error, compression ratio and seeds of a result."""
    from accuracy.texts import title, with_unit

    return (
        f"{title(row)} on {row.network}, {row.ranks} ranks: {with_unit(row)}, "
        f"{row.ratio:,.0f}x, {row.seeds} seeds"
    )


def listed(found: Iterable[Judged]) -> str:
    """Describe results in one line."""
    return "; ".join(map(result, found)) or "no result yet"


def tables(rows: list[Row]) -> str:
    """Return a table of results per network, including dense."""
    from accuracy.judge import complete
    from accuracy.texts import results, tolerance
    from accuracy.workloads import WORKLOADS

    found, parts = complete(part_of(rows, ACCURACY)), []
    for network, work in WORKLOADS.items():
        here = [row for row in found if row.network == network]
        if any(row.method != DENSE for row in here):
            parts.append(f"{work.title}, tolerance {tolerance(work)}:\n")
            parts.append(results(work, here))
    return "\n".join(parts) or "No result has enough seeds yet.\n"
