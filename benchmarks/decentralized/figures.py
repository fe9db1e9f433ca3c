"""Figures of docs/decentralized.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from claims.drawing import BLACK, BLUE, COLOURS, GREEN, ORANGE, PINK, SKY, axes

from .convergence import LONG, SMALL
from .rows import CENTRAL, RESIDUAL, RING, Row, excess, of, speedups, trained
from .times import RANKS, SLOW_NETWORK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LATENCIES = np.geomspace(1e-6, 0.1, 61)
BANDWIDTHS = np.geomspace(1e7, 1e11, 61)
LEVELS = [0.25, 0.5, 0.8, 0.9, 1, 1.1, 1.5, 2, 4, 8, 16]
SHADES = [  # from slower, purple, to faster, green
    *("#40004b", "#762a83", "#9970ab", "#c2a5cf", "#e7d4e8", "#eef8ea"),
    *("#d9f0d3", "#a6dba0", "#5aae61", "#2a8b47", "#1b6b32", "#00441b"),
]
PRESETS = {"gige": (1e9, 50e-6), "10gbit": (1e10, 30e-6), "aries": (8e10, 1.5e-6)}


def time_map(rows: list[Row]) -> Figure:
    """Draw where D-PSGD on a ring is faster, by latency and bandwidth."""
    canvas, found = axes(len(RANKS), (10.4, 3.3))
    x, y = np.meshgrid(LATENCIES, BANDWIDTHS)
    for ax, ranks in zip(found, RANKS, strict=True):
        ratio = speedups(rows, "ResNet-50", ranks, x, y)
        shades = ax.contourf(x * 1e3, y / 1e9, ratio, LEVELS, colors=SHADES, extend="both")
        ax.contour(x * 1e3, y / 1e9, ratio, [1], colors=BLACK, linewidths=1.6)
        small = speedups(rows, "ResNet20", ranks, x, y)
        ax.contour(
            x * 1e3, y / 1e9, small, [1], colors=BLACK, linestyles=":", linewidths=1.4
        )
        for name, (bits, latency) in {**PRESETS, SLOW_NETWORK: (1e8, 5e-3)}.items():
            ax.plot(latency * 1e3, bits / 1e9, "o", color=BLACK, ms=3)
            ax.annotate(
                name, (latency * 1e3, bits / 1e9), (0, 4), textcoords="offset points",
                fontsize=7, ha="right" if latency > 1e-3 else "center",
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="latency (ms)", title=f"{ranks:,} nodes")
        ax.set_xticks(
            [1e-3, 1e-2, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"]
        )
        ax.tick_params(axis="x", labelsize=7)
    found[0].set_ylabel("bandwidth (Gbit/s)")
    bar = canvas.colorbar(shades, ax=found, ticks=LEVELS, pad=0.01)
    bar.ax.set_yticklabels([f"{level:g}x" for level in LEVELS])
    bar.set_label("allreduce / D-PSGD, ResNet-50")
    return canvas


def convergence(rows: list[Row]) -> Figure:
    """Draw the loss against steps, and the error against nodes times steps."""
    canvas, (left, right) = axes(2, (9.6, 3.6), together=False)
    for colour, setting in zip((BLUE, ORANGE), (SMALL, LONG), strict=True):
        central, mine = (trained(rows, name, setting) for name in (CENTRAL, RING))
        name, marks = f"learning rate {setting[0]:g}", mine["marks"]
        for losses, style, label in (
            (central["mean"], "--", "centralized"),
            (mine["mean"], "-", "D-PSGD, mean model"),
            (mine["local"], ":", "D-PSGD, single nodes"),
        ):
            left.plot(marks, losses, style, color=colour, label=f"{name}: {label}")
    left.set(xlabel="steps", ylabel="loss", xscale="log")
    left.set_title(f"{mine['nodes']} nodes in a ring")
    left.legend(frameon=False, fontsize=8)
    for colour, nodes in zip((SKY, GREEN, BLUE), sorted(_nodes(rows)), strict=True):
        for method, style in ((RING, "o-"), ("centralized", "x--")):
            points = of(rows, "rate", method=method, nodes=nodes)
            x = [nodes * row["steps"] for row in points]
            right.plot(
                x, [row["error"] for row in points], style, color=colour, ms=4, lw=1.2,
                label=f"{nodes} nodes, {method}",
            )  # fmt: skip
    guide = np.array([1e3, 1e6])
    first = of(rows, "rate", method="centralized")[0]
    level = first["error"] * np.sqrt(first["nodes"] * first["steps"])
    right.plot(guide, level / np.sqrt(guide), color="0.6", lw=1, label="1 / sqrt(n K)")
    right.set(xscale="log", yscale="log", xlabel="nodes times steps, n K")
    right.set(ylabel="mean ‖grad‖^2", title="learning rate ~ sqrt(n / K)")
    right.legend(frameon=False, fontsize=7)
    return canvas


def _nodes(rows: list[Row]) -> set[int]:
    return {row["nodes"] for row in of(rows, "rate")}


def residual(rows: list[Row]) -> Figure:
    """Draw the loss of the residual network, and how far D-PSGD's is above the other."""
    canvas, (left, right) = axes(2, (9.6, 3.6), together=False)
    settings = sorted({(row["lr"], row["steps"]) for row in of(rows, RESIDUAL)})
    for colour, setting in zip((BLUE, ORANGE), settings, strict=False):
        central, mine = (trained(rows, name, setting, RESIDUAL) for name in (CENTRAL, RING))
        name = f"learning rate {setting[0]:g}"
        for losses, style, label in (
            (central["mean"], "--", "centralized"),
            (mine["mean"], "-", "D-PSGD, mean model"),
            (mine["local"], ":", "D-PSGD, single nodes"),
        ):
            left.plot(mine["marks"], losses, style, color=colour, label=f"{name}: {label}")
        steps, above = zip(*excess(rows, RING, setting, RESIDUAL), strict=True)
        right.plot(steps, [100 * x for x in above], "o-", color=colour, ms=3, label=name)
    left.set(
        xlabel="steps", ylabel="loss", title=f"ResNet20, {mine['nodes']} nodes in a ring"
    )
    right.axhline(2, color="0.6", lw=1, ls="--")
    right.set(xlabel="steps", ylabel="D-PSGD above centralized (%)", title="mean model")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=8)
    return canvas


def compressed(rows: list[Row]) -> Figure:
    """Draw the loss above the minimum, for each number of bits."""
    bits = sorted({row["bits"] for row in of(rows, "compressed")} - {0})
    canvas, found = axes(len(bits), (9.6, 3.6))
    looks = {"centralized": (BLACK, "--"), RING: (BLACK, "-"), "naive": (ORANGE, "-")}
    looks |= {"DCD": (BLUE, "-"), "ECD": (PINK, "-"), "Choco": (GREEN, "-")}
    for ax, width in zip(found, bits, strict=True):
        for row in of(rows, "compressed"):
            if row["bits"] not in (0, width):
                continue
            colour, style = looks[row["method"]]
            name = row["method"] + ("" if row["bits"] else ", float32")
            ax.plot(row["marks"], row["mean"], style, color=colour, label=name, lw=1.3)
        ax.set(
            xlabel="steps", yscale="log", title=f"{width} bits per value", ylim=(3e-5, 100)
        )
        ax.legend(frameon=False, fontsize=8, loc="upper right")
    found[0].set_ylabel("loss of the mean model - minimum")
    return canvas


def different_data(rows: list[Row]) -> Figure:
    """Draw the mean loss of single nodes above the minimum."""
    canvas, (ax,) = axes(1, (6.4, 3.6))
    for colour, row in zip((BLACK, *COLOURS), of(rows, "different data"), strict=False):
        style = "--" if row["method"] == "allreduce" else "-"
        ax.plot(row["marks"], row["local"], style, color=colour, label=row["method"])
    ax.set(
        xscale="log", yscale="log", xlabel="steps", ylabel="mean loss of nodes - minimum"
    )
    ax.legend(frameon=False, fontsize=8)
    return canvas


FIGURES = {
    "decentralized-map": time_map,
    "decentralized-convergence": convergence,
    "decentralized-resnet": residual,
    "decentralized-bits": compressed,
    "decentralized-data": different_data,
}
