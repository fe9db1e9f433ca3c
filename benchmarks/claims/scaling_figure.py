"""Bars of claim 22: computing, and the rest of a step above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scaling_runs import EMULATED, METHODS, MODELLED, MODELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .base import Row

WIDTH = 0.27


def few(rows: list[Row]) -> Figure:
    """Plot emulated bars, with marks for the simulation."""
    canvas = _panels(rows, "emulated", EMULATED)
    simulated = {
        (r["model"], r["method"], r["ranks"]): r for r in rows if r["kind"] == "simulated"
    }
    for ax, name in zip(canvas.axes, MODELS, strict=True):
        for i, method in enumerate(METHODS):
            for place, ranks in enumerate(EMULATED):
                x, step = place + (i - 1) * WIDTH, simulated[name, method, ranks]["step"]
                ax.plot([x - 0.12, x + 0.12], [step] * 2, "-", color="black", lw=1.5)
    canvas.axes[0].plot([], [], "-", color="black", lw=1.5, label="simulated")
    return _finished(canvas, "Bars: emulated, a tenth of each model at 100 Mbit/s")


def many(rows: list[Row]) -> Figure:
    """Plot modelled bars."""
    canvas = _panels(rows, "modelled", MODELLED)
    return _finished(canvas, "Bars: modelled, 1 Gbit/s, a batch 64 times larger")


def _panels(rows: list[Row], kind: str, counts: tuple[int, ...]) -> Figure:
    from .drawing import axes

    canvas, found = axes(len(MODELS), (10.5, 3.6), together=False)
    for ax, name in zip(found, MODELS, strict=True):
        _panel(ax, [r for r in rows if (r["kind"], r["model"]) == (kind, name)], counts)
        ax.set_title(name)
        ax.set(xlabel="ranks", xlim=(-0.6, len(counts) - 0.4))
        ax.set_xticks(range(len(counts)), [f"{ranks:,}" for ranks in counts])
        ax.grid(visible=False, axis="x")
        ax.set_axisbelow(True)
    found[0].set_ylabel("a step (s)")
    return canvas


def _panel(ax: Axes, rows: list[Row], counts: tuple[int, ...]) -> None:
    from .drawing import BLUE, GREEN, ORANGE

    for i, (method, colour) in enumerate(zip(METHODS, (ORANGE, BLUE, GREEN), strict=True)):
        at = {row["ranks"]: row for row in rows if row["method"] == method}
        places = [place + (i - 1) * WIDTH for place in range(len(counts))]
        compute = [at[ranks]["compute"] for ranks in counts]
        rest = [at[ranks]["step"] - at[ranks]["compute"] for ranks in counts]
        label = None if i else "computing"
        ax.bar(places, compute, WIDTH * 0.9, color="0.72", label=label)
        ax.bar(places, rest, WIDTH * 0.9, bottom=compute, color=colour, label=method)


def _finished(canvas: Figure, title: str) -> Figure:
    title += "; grey: computing, colour: allreduce and the method itself"
    canvas.suptitle(title, fontsize=10)
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return canvas
