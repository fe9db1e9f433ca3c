"""Tables of docs/torch.md."""

from __future__ import annotations

from typing import Any

from tables import markdown

Row = dict[str, Any]
SLACK = 0.05  # tolerated cost of auto, beyond the difference of two plain runs


def auto(rows: list[Row]) -> str:
    """Return a table with one row per network."""
    head = ["network", "parameters", "plain DDP (ms)", "plain, repeated (ms)"]
    head += ["recommended (ms)", "auto (ms)", "auto / plain", "tolerance", "met"]
    head += ["decision of auto"]
    lines = []
    for row in rows:
        allowed = 1 + SLACK + row["noise"]
        cells = [row["network"], f"{row['values'] / 1e6:.2g} M"]
        keys = ("plain", "again", "recommended", "auto")
        cells += [f"{1e3 * row[key]:.1f}" for key in keys]
        cells += [f"{row['ratio']:.3f}", f"{allowed:.3f}"]
        cells += ["yes" if row["ratio"] <= allowed else "no", _decision(row)]
        lines.append(cells)
    return markdown(head, lines)


def _decision(row: Row) -> str:
    """Return the label of the chosen method, or why there is none."""
    text: str = row["decided"].removeprefix("auto: ")
    if text.startswith("no "):
        return text.partition(" (")[0]
    compressed = [e for e in row["estimates"] if e[0] != "dense" and e[2] == "measured"]
    label: str = min(compressed, key=lambda e: e[1])[0]
    return label


def embedding(rows: list[Row]) -> str:
    """Return a table with one row per table size and number of rows."""
    head = ["rows of the table", "rows used per rank", "ours (ms)", "gloo (ms)", "speedup"]
    head += ["memory growth (MB)"]
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
