"""Tables about single processes: how long they start, what a training step takes."""

from __future__ import annotations

from typing import Any

from tables import markdown, shown

Row = dict[str, Any]


def large_tensor(rows: list[Row]) -> str:
    """Return one row per method: time and peak memory of a step, and ratios to plain DDP."""
    head = [
        "method",
        "step (s)",
        "of plain DDP",
        "processor (s)",
        "peak (GB)",
        "of plain DDP",
    ]
    lines = [
        [
            f"`{row['settings']}`" if row["settings"] != "None" else row["method"],
            shown(row["seconds"], ".2f"),
            shown(row["time_ratio"], ".2f"),
            shown(row["processor"], ".2f"),
            shown(row["peak"] / 1e9, ".2f"),
            shown(row["peak_ratio"], ".2f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def threads(rows: list[Row]) -> str:
    """Return one row per task: its time on one thread and on all."""
    head = ["task", "1 thread (ms)", f"{rows[0]['threads']} threads (ms)", "speedup"]
    lines = [
        [
            row["task"],
            shown(row["one"] * 1e3, ".1f"),
            shown(row["all"] * 1e3, ".1f"),
            f"{row['speedup']:.2f}x",
        ]
        for row in rows
    ]
    return markdown(head, lines)


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
