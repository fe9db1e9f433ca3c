"""The paper's two figures: time against density and against ranks, log-log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micro.rows import DENSE, SHORT, SPARSE, chosen
from micro.vectors import FEW, SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .base import Row

PLACES = (("1gbit", "GigE, emulated"), ("aries", "Aries, simulated"))


def densities(rows: list[Row]) -> Figure:
    """Plot 8 ranks and 16 M values; dense allreduces are horizontal lines."""
    from .drawing import axes

    canvas, places = axes(2, (9.0, 3.9))
    for ax, (network, title) in zip(places, PLACES, strict=True):
        here = chosen(rows, network=network, ranks=8, size=SIZE)
        _curves(ax, here, "density", 100)
        _levels(ax, here)
        ax.set(xlabel="density per rank (%)", title=f"{title}: 8 ranks, 16 M values")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.legend(frameon=False, fontsize=7)
    places[0].set_ylabel("time (ms)")
    return canvas


def ranks(rows: list[Row]) -> Figure:
    """Plot 4 of 512 per rank; more ranks use a shorter vector, to fit into memory."""
    from .drawing import axes

    canvas, places = axes(3, (11.5, 3.9))
    panels = [(*place, SIZE, "16 M values") for place in PLACES]
    panels.append((*PLACES[1], 1 << 20, "1 M values"))
    for ax, (network, title, size, long) in zip(places, panels, strict=True):
        here = chosen(rows, network=network, size=size)
        _curves(ax, [row for row in here if row["density"] == FEW], "ranks")
        _curves(ax, [row for row in here if row["density"] == 1], "ranks", names=DENSE)
        counts = sorted({row["ranks"] for row in here})
        ax.set_xticks(counts, [str(count) for count in counts])
        ax.set_xlim(0.8 * counts[0], 1.25 * counts[-1])
        ax.set(xlabel="ranks", title=f"{title}: 4/512, {long}")
        ax.legend(frameon=False, fontsize=7)
    places[0].set_ylabel("time (ms)")
    return canvas


def _curves(
    ax: Axes, rows: list[Row], key: str, scale: float = 1, names: tuple[str, ...] = SPARSE
) -> None:
    """Plot medians, with bars from the first to the third quartile."""
    ax.set(xscale="log", yscale="log")
    ax.yaxis.set_major_formatter("{x:g}")
    for name in names:
        here = [row for row in rows if row["algorithm"] == name]
        if not here:
            continue
        x = [scale * row[key] for row in here]
        low, y, high = ([row[q] / 1e3 for row in here] for q in ("p25", "p50", "p75"))
        bars = [
            [m - q for m, q in zip(y, low, strict=True)],
            [q - m for m, q in zip(y, high, strict=True)],
        ]
        colour, mark = _look(name)
        ax.errorbar(
            x, y, bars, fmt=mark, color=colour, ms=4, lw=1.2, capsize=2, label=SHORT[name]
        )


def _levels(ax: Axes, rows: list[Row]) -> None:
    for row in rows:
        if row["algorithm"] in DENSE:
            colour, _ = _look(row["algorithm"])
            ax.axhline(
                row["p50"] / 1e3,
                color=colour,
                ls="--",
                lw=1.2,
                label=SHORT[row["algorithm"]],
            )


def _look(name: str) -> tuple[str, str]:
    from .drawing import BLACK, BLUE, GOLD, GREEN, ORANGE, PINK, SKY

    return {
        "ssar_recursive_double": (BLUE, "-o"),
        "ssar_split_allgather": (ORANGE, "-s"),
        "dsar_split_allgather": (GREEN, "-^"),
        "ssar_ring": (GOLD, "-v"),
        "ring": (BLACK, "--x"),
        "native": ("0.5", "--d"),
        "gloo_allreduce": (PINK, "--d"),
        "mpi_allreduce": (SKY, "--d"),
    }[name]
