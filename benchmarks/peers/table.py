"""The comparison as a table, from the saved curves."""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]

NEAR = 1.01  # the same loss: at most so many times the smallest
OURS = ("ours", "ours_ranks")


class Point(NamedTuple):
    """Point where a program reaches a loss."""

    seconds: float
    passes: int
    setting: str


def best(row: Row) -> float:
    """Return the smallest loss of all settings."""
    return min((min(curve["losses"]) for curve in row["curves"]), default=float("inf"))


def fastest(row: Row, loss: float) -> Point | None:
    """Return the fastest point with a loss, of all settings."""
    points = [
        Point(seconds, passes, curve["setting"])
        for curve in row["curves"]
        for seconds, passes, found in zip(
            curve["seconds"], curve["passes"], curve["losses"], strict=True
        )
        if found <= loss
    ]
    return min(points, default=None)


def rival(row: Row, rows: list[Row]) -> Row:
    """Return our row on the same data: four processes for Spark, one for the others."""
    wanted = "ours_ranks" if row["peer"] == "spark" else "ours"
    return next(r for r in rows if (r["peer"], r["data"]) == (wanted, row["data"]))


def lowest(rows: list[Row], data: str) -> float:
    """Return the smallest loss of the other programs, plus one percent."""
    return NEAR * min(
        best(row) for row in rows if row["data"] == data and row["peer"] not in OURS
    )


HEAD = (
    "data",
    "program",
    "threads",
    "reading (s)",
    "best loss",
    "setting, to 1 % of it",
    "epochs",
    "runs",
    "seconds",
    "ours, to the same loss (s)",
    "ratio",
    "to the best loss of the others (s)",
)


def line(row: Row, rows: list[Row]) -> list[str]:
    """Return the cells of one program on one problem."""
    name = f"{row['name']} {row['version']}".strip()
    if not row["curves"]:
        return [row["data"], name, row["threads"], "not installed", *[""] * (len(HEAD) - 4)]
    level = NEAR * best(row)
    here = fastest(row, level)
    assert here is not None
    ours = None if row["peer"] in OURS else fastest(rival(row, rows), level)
    common = fastest(row, lowest(rows, row["data"]))
    cells = [row["data"], name, row["threads"], f"{row['reading']:.2f}", f"{best(row):.4f}"]
    cells += [f"`{here.setting}`", str(here.passes), str(row["runs"])]
    cells.append(f"{here.seconds:.2f}")
    if row["peer"] in OURS:
        cells += ["", ""]
    elif ours is None:
        cells += ["not reached", ""]
    else:
        cells += [f"{ours.seconds:.2f}", f"{here.seconds / ours.seconds:.1f}x"]
    return [*cells, "not reached" if common is None else f"{common.seconds:.2f}"]


def lines(rows: list[Row]) -> list[list[str]]:
    """Return the cells of all programs, in the order of the file."""
    return [line(row, rows) for row in rows]
