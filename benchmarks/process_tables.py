"""Tables about single processes: how long they start, what a training step takes."""

from __future__ import annotations

from typing import Any

from tables import markdown, shown

Row = dict[str, Any]


def startup(rows: list[Row]) -> str:
    """Return one row per program that was started."""
    head = ["program", "wall (ms)", "processor (ms)", "more than `import numpy` (ms)"]
    lines = [
        [
            f"`{row['program']}`",
            shown(row["wall"], ".0f"),
            shown(row["processor"], ".0f"),
            shown(row["over_numpy"], "+.0f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)
