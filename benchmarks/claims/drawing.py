"""Shared style of the figures, with reproducible SVG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from .base import Row

BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # told apart by everyone
GOLD, SKY, PINK, BLACK = "#e69f00", "#56b4e9", "#cc79a7", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, GOLD, SKY, PINK, BLACK)
STYLE: dict[Any, Any] = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "sparcml"}


def axes(
    count: int, inches: tuple[float, float], *, together: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a white figure with axes side by side; `together` shares their scale."""
    canvas = Figure(figsize=inches, facecolor="white", layout="constrained")
    found = canvas.subplots(1, count, sharey=together, squeeze=False)[0]
    for ax in found:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.9")
    return canvas, list(found)


def svg(draw: Callable[[list[Row]], Figure], rows: list[Row]) -> str:
    """Return the figure as SVG text, without a date."""
    file = io.StringIO()
    with mpl.rc_context(STYLE):
        canvas = draw(rows)
        for ax in canvas.axes:
            # Ranks are powers of two: the marks of a decade would only be in the way.
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_minor_formatter(NullFormatter())
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
