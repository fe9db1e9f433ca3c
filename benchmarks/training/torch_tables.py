"""The tables of docs/torch.md."""

from __future__ import annotations

from typing import Any

from tables import markdown

Row = dict[str, Any]
SLACK = 0.05  # that auto may cost, beside what two plain models differ by


def auto(rows: list[Row]) -> str:
    """One line a network."""
    head = ["network", "parameters", "plain DDP (ms)", "plain again (ms)", "auto (ms)"]
    head += ["auto / plain", "allowed", "met", "what auto has decided"]
    lines = []
    for row in rows:
        allowed = 1 + SLACK + row["noise"]
        cells = [row["network"], f"{row['values'] / 1e6:.2g} M"]
        cells += [f"{1e3 * row[key]:.1f}" for key in ("plain", "again", "auto")]
        cells += [f"{row['ratio']:.3f}", f"{allowed:.3f}"]
        cells += ["yes" if row["ratio"] <= allowed else "no", _decision(row["decided"])]
        lines.append(cells)
    return markdown(head, lines)


def _decision(said: str) -> str:
    """The name of what was tried or planned, and whether it was taken."""
    text = said.removeprefix("auto: ")
    if not text.startswith("no hook"):
        text = text.rpartition("): ")[2]
    return text.partition(", tried")[0].partition(" (")[0]


def embedding(rows: list[Row]) -> str:
    """One line a table and number of rows."""
    head = ["rows of the table", "used by each rank", "ours (ms)", "gloo (ms)", "ratio"]
    head += ["memory grew by (MB)"]
    lines = [
        [
            f"{row['table'] / 1e6:g} M",
            f"{row['used']:,}",
            f"{1e3 * row['ours']:.1f}",
            f"{1e3 * row['gloo']:.1f}",
            f"{row['gloo'] / row['ours']:.1f}x",
            f"{row['grown_mb']:.0f}",
        ]
        for row in rows
    ]
    return markdown(head, lines)
