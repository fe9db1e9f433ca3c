"""Figure of a network: differences to dense against the bytes of a full run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .judge import complete
from .roster import ROSTER
from .summary import is_default
from .texts import difference, scale, title, unit
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .jobs import Row
    from .judge import Judged
    from .workloads import Workload

MARKS = "os^vDP*X"
FILLS = {8: "white", 16: "0.8"}  # others have the colour of the method
FLOOR = 6.0  # tolerances; worse results are drawn at the lower edge


def plotted(rows: list[Row], network: str) -> list[Judged]:
    """Return the results of compressed runs, at the dense rate or the method's own."""
    return [
        row
        for row in complete(rows)
        if row.network == network and row.ranks > 1 and is_default(row)
    ]


def figure(rows: list[Row], network: str) -> Figure:
    """Plot all methods: mean difference, standard error and bytes sent per rank."""
    from claims.drawing import BLACK, axes
    from matplotlib.ticker import LogLocator

    work, found = WORKLOADS[network], plotted(rows, network)
    canvas, (ax,) = axes(1, (8.6, 4.4))
    factor, edge = scale(work), _edge(found, work)
    handles: dict[str, Any] = {}
    for row in found:
        fmt, colour = _style(row)
        here: dict[str, Any] = {"fmt": fmt, "color": colour, "ms": 7, "capsize": 3}
        here["mfc"] = FILLS.get(row.ranks, colour)
        size, text = row.sent / 1e6, title(row)
        if _is_outside(row, work):
            drawn = ax.errorbar(size, edge, **here)
            _arrow(ax, size, edge, colour)
            text += f": {difference(row)}"
        else:
            drawn = ax.errorbar(size, factor * row.difference, factor * row.error, **here)
        handles.setdefault(text, drawn)
    for ranks, size in {r.ranks: r.ratio * r.sent / 1e6 for r in found}.items():
        fill = FILLS.get(ranks, BLACK)
        (point,) = ax.plot(size, 0, "d", color=BLACK, mfc=fill, ms=7, ls="")
        handles.setdefault("dense", point)
    ax.axhline(0, color="0.6", lw=1, ls=":")
    ax.axhline(-factor * work.tolerance, color="0.5", lw=1, ls="--")
    ax.margins(y=0.1)
    ax.set(xscale="log", xlabel="MB sent per rank, full run")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.set_ylabel(f"difference to dense ({unit(work)}), positive is better")
    canvas.suptitle(f"{work.title}\n{_key(found)}", fontsize=9)
    canvas.legend(
        handles.values(), handles.keys(), loc="outside right center", frameon=False
    )
    return canvas


def _is_outside(row: Judged, work: Workload) -> bool:
    return row.score is None or row.difference < -FLOOR * work.tolerance


def _edge(found: list[Judged], work: Workload) -> float:
    """Return the height of the points that are worse than the figure shows."""
    inside = [r.difference - r.error for r in found if not _is_outside(r, work)]
    return scale(work) * (min([*inside, -work.tolerance]) - work.tolerance / 2)


def _style(row: Judged) -> tuple[str, str]:
    """Return marker and colour, the same in all figures."""
    from claims.drawing import COLOURS

    place = list(ROSTER).index(row.method)
    mark = place + round(row.multiple) - 1
    return MARKS[mark % len(MARKS)], COLOURS[place % len(COLOURS)]


def _arrow(ax: Axes, x: float, y: float, colour: str) -> None:
    """Show that a point is below the edge."""
    ax.annotate(
        "",
        xy=(x, y),
        xytext=(0, -18),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": colour, "lw": 1.5},
    )


def _key(found: list[Judged]) -> str:
    names = {2: "filled", 8: "white", 16: "grey"}
    ranks = sorted({row.ranks for row in found})
    fills = ", ".join(f"{names.get(n, 'filled')}: {n} ranks" for n in ranks)
    seeds = min(row.seeds for row in found)
    return f"{fills}; dashed: tolerance; bars: standard error of {seeds} seeds"
