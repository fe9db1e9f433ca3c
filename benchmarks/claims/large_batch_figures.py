"""Figures of claim 29."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batch_sizes.judge import best_curve, curve
from batch_sizes.plan import BATCHES, FULL_BATCH, SMALL_BATCH, TARGET
from batch_sizes.recipes import RECIPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .base import Row

MARKS = dict(zip(RECIPES, "so^D", strict=True))


def _colours() -> dict[str, str]:
    from .drawing import BLUE, GREEN, ORANGE, PINK

    return dict(zip(RECIPES, (BLUE, ORANGE, GREEN, PINK), strict=True))


def scaling_figure(rows: list[Row]) -> Figure:
    """Plot steps to the target against batch size; empty marks are with compression."""
    from .drawing import axes

    canvas, panels = axes(2, (9.0, 4.0))
    best = best_curve(rows, "sgd")
    for ax, names in zip(panels, (("sgd", "sam"), ("lars", "lamb")), strict=True):
        if BATCHES[0] in best:
            start = best[BATCHES[0]].value
            ideal = [start * BATCHES[0] / batch for batch in BATCHES]
            ax.plot(BATCHES, ideal, ":", color="0.6", lw=1, label="perfect scaling")
        ax.plot(
            list(best), [p.value for p in best.values()], "-", color="0.75", lw=5,
            label="SGD, best rate", zorder=0,
        )  # fmt: skip
        for name in names:
            _recipe(ax, rows, name)
        ax.set(xscale="log", yscale="log", xlabel="batch size")
        ax.set_xticks(BATCHES[::3], [f"{batch:,}" for batch in BATCHES[::3]])
        ax.legend(frameon=False, fontsize=7.5)
    low = min(point.value for point in best.values()) if best else 10.0
    panels[0].set(ylabel=f"steps to {TARGET:g} % of test images", ylim=(0.6 * low, None))
    canvas.suptitle("Steps to the target against batch size", fontsize=10)
    return canvas


def _recipe(ax: Axes, rows: list[Row], name: str) -> None:
    recipe, colour = RECIPES[name], _colours()[name]
    for compressed in (False, True):
        points = curve(rows, name, compressed=compressed)
        label = recipe.title + (f", {recipe.method_title}" if compressed else "")
        ax.errorbar(
            list(points),
            [point.value for point in points.values()],
            [point.error for point in points.values()],
            fmt=f"{MARKS[name]}{'--' if compressed else '-'}",
            color=colour,
            mfc="white" if compressed else colour,
            ms=5,
            lw=1,
            label=label,
        )


def sharpness_figure(rows: list[Row]) -> Figure:
    """Plot the generalization gap of each network against its sharpness."""
    from .drawing import axes

    canvas, (ax,) = axes(1, (6.0, 3.8))
    colours = _colours()
    for row in rows:
        if row["part"] != "sharpness" or row["steps"] is None:
            continue
        colour = colours[row["recipe"]]
        ax.plot(
            row["sharpness"], row["gap"], MARKS[row["recipe"]], color=colour,
            ms=8 if row["batch"] == FULL_BATCH else 4,
        )  # fmt: skip
    shown: dict[str, Any] = {"ls": "", "ms": 5}
    for name, recipe in RECIPES.items():
        ax.plot(
            [], [], marker=MARKS[name], color=colours[name], label=recipe.title, **shown
        )
    shown["ms"] = 8
    label = f"large marks: batch {FULL_BATCH:,}, small: {SMALL_BATCH}"
    ax.plot([], [], marker="s", color="0.4", label=label, **shown)
    ax.set(xlabel="sharpness", ylabel="training less test accuracy (points)", xscale="log")
    ax.set_title(
        "Sharpness against the generalization gap, at equal training loss", fontsize=9
    )
    ax.legend(frameon=False, fontsize=7.5)
    return canvas
