"""Shared part of the claims on training networks: rows of `make bench-training`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tables import newest
from training.roster import NAMES

if TYPE_CHECKING:
    from training.judge import Score

    from .base import Row


def rows_of(part: str, methods: tuple[str, ...], networks: tuple[str, ...]) -> list[Row]:
    """Return the rows of plain DDP and of some methods on some networks."""
    kept = newest(f"training-{part}")
    if kept is None:
        raise SystemExit("no training results are saved; run: make bench-training")
    return [
        row | {"part": part}
        for row in kept["rows"]
        if row["method"] in ("dense", *methods) and row["network"] in networks
    ]


def part_of(rows: list[Row], part: str) -> list[Row]:
    """Return the rows of scores, or those of steps."""
    return [row for row in rows if row["part"] == part]


def result(method: str, network: str, s: Score, *, relative: bool) -> str:
    """Describe the score and bytes of a method on a network."""
    apart = f"{s.apart:+.1%}" if relative else f"{s.apart:+.2f} points"
    return f"{NAMES[method]} on {network}: {apart}, {s.fewer:.0f}x fewer bytes"
