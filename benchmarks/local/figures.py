"""Figure of docs/local.md: difference to synchronous training against the steps per round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .forms import FORMS
from .losses import cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .losses import Case

Row = dict[str, Any]

NETWORK, WORKERS, GOAL = "gpt", 4, 2.0
MARKS = "os^vDP*X"


def figure(rows: list[Row]) -> Figure:
    """Plot runs of four workers on the GPT with a start: mean and standard error over seeds."""
    from claims.drawing import COLOURS, axes
    from matplotlib.ticker import FixedLocator

    canvas, (ax,) = axes(1, (8.2, 4.2))
    found = [c for c in cases(rows) if (c.network, c.workers) == (NETWORK, WORKERS)]
    groups: dict[str, list[Case]] = {}
    for case in sorted(found, key=lambda c: (list(FORMS).index(c.form), c.every)):
        if case.score is not None and case.start:
            groups.setdefault(case.form, []).append(case)
    for form, line in groups.items():
        place = list(FORMS).index(form)
        ax.errorbar(
            [case.every for case in line],
            [100 * case.difference for case in line],
            [100 * (case.error or 0) for case in line],
            fmt=f"{MARKS[place % len(MARKS)]}-",
            color=COLOURS[place % len(COLOURS)],
            ms=7,
            capsize=3,
            label=form,
        )
    ax.axhline(0, color="0.6", lw=1, ls=":")
    ax.axhline(GOAL, color="0.5", lw=1, ls="--")
    ax.set(xscale="log", xlabel="H, inner steps per round")
    ax.xaxis.set_major_locator(FixedLocator(sorted({c.every for c in found})))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_ylabel("perplexity above synchronous (%)")
    canvas.legend(loc="outside right center", frameon=False)
    return canvas
