"""JSON rows that jobs add to, one job at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sparcml.bench.results import write_json
from sparcml.environment import describe

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
LEAST = 30  # steps per median
POOLED = ("steps", "compute")  # lists of seconds


def rows_of(path: Path) -> list[Row]:
    """Return the saved rows; none without a file."""
    return json.loads(path.read_text())["rows"] if path.exists() else []


def keep(path: Path, row: Row, names: tuple[str, ...], torch: str) -> Row:
    """Replace the row with the same names, or append it.

    If the old row has too few steps, the new ones are added to it, so that long steps can be
    measured in several jobs.

    Returns:
        The saved row.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = rows_of(path)
    for place, old in enumerate(rows):
        if all(old[name] == row[name] for name in names):
            rows[place] = row = _pooled(old, row)
            break
    else:
        rows.append(row)
    write_json(path, describe("", 0, torch=torch), rows)
    return row


def _pooled(old: Row, new: Row) -> Row:
    if len(old[POOLED[0]]) >= LEAST:
        return new
    return new | {name: old[name] + new[name] for name in POOLED}
