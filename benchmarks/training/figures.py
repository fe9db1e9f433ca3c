"""Figures of training runs: time of a step, and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claims.drawing import COLOURS, ORANGE, axes

from .judge import curve, scores, steps_at
from .pages import LINKS
from .roster import NAMES, NETWORKS, WIDE, WIDE_RANKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .judge import Row

MARKS = "os^vDP*Xo^sd"
FEWEST = 3  # points that are worth a plot; the tables have the others


def where_time_goes(rows: list[Row]) -> Figure:
    """Plot the wide tagger: computing and exposed communication."""
    at = {link: here for link in LINKS if (here := steps_at(rows, WIDE, WIDE_RANKS, link))}
    canvas, found = axes(len(at), (9.5, 3.2), together=False)
    for ax, (link, here) in zip(found, at.items(), strict=True):
        names = [name for name in NAMES if name in here]
        for place, name in enumerate(names):
            step = here[name]
            ax.barh(place, step.compute, 0.7, color="0.72")
            ax.barh(place, step.exposed, 0.7, left=step.compute, color=ORANGE)
            text = f" {step.seconds:.2f} s"
            if "dense" in here:
                text += f", {here['dense'].seconds / step.seconds:.2f}x"
            ax.text(step.seconds, place, text, va="center", fontsize=8)
        ax.set_yticks(range(len(names)), [NAMES[name] for name in names])
        ax.set_xlim(0, 1.4 * max(s.seconds for s in here.values()))
        ax.invert_yaxis()
        ax.set_title(f"{LINKS[link]}, {WIDE_RANKS} ranks", fontsize=10)
        ax.set_xlabel("seconds per step")
        ax.grid(visible=False)
    canvas.suptitle(
        "ATIS LSTM of 20 M parameters, emulated; grey: communication off, colour: exposed",
        fontsize=10,
    )
    return canvas


def bytes_and_scores(rows: list[Row]) -> Figure:
    """Plot the final score against the bytes of the full run, where methods are compared."""
    counted = {name: scores(rows, name) for name in NETWORKS if not NETWORKS[name].rows}
    names = [name for name, at in counted.items() if "dense" in at and len(at) >= FEWEST]
    canvas, found = axes(len(names), (3.4 * len(names) + 2.2, 3.6), together=False)
    for ax, network in zip(found, names, strict=True):
        here = scores(rows, network)
        for place, method in enumerate(NAMES):
            if method in here:
                mine = here[method]
                ax.plot(
                    mine.sent / 1e6,
                    mine.score,
                    MARKS[place % len(MARKS)],
                    color=COLOURS[place % len(COLOURS)],
                    mfc="white" if place >= len(COLOURS) else COLOURS[place],
                    ms=6,
                    ls="",
                    label=NAMES[method],
                )
        ax.axhline(here["dense"].score, color="0.6", lw=1, ls=":")
        metric = next(row["metric"] for row in rows if row["network"] == network)
        ax.set(xscale="log", xlabel="MB sent per rank, full run", ylabel=metric)
        ax.set_title(NETWORKS[network].title, fontsize=9)
    handles = {
        label: handle
        for ax in found
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(
        handles.values(), handles.keys(), loc="outside right center", frameon=False
    )
    return canvas


def curves(rows: list[Row]) -> Figure:
    """Plot the score after each epoch, where there are several."""
    names = [name for name in NETWORKS if len(curve(rows, name, "dense")) >= FEWEST]
    canvas, found = axes(len(names), (3.4 * len(names) + 2.2, 3.4), together=False)
    handles = {}
    for ax, network in zip(found, names, strict=True):
        for place, method in enumerate(NAMES):
            if points := curve(rows, network, method):
                (line,) = ax.plot(
                    *zip(*points, strict=True),
                    f"{MARKS[place % len(MARKS)]}-",
                    color=COLOURS[place % len(COLOURS)],
                    mfc="white" if place >= len(COLOURS) else COLOURS[place],
                    ms=4,
                    lw=1,
                )
                handles[NAMES[method]] = line
        metric = next(row["metric"] for row in rows if row["network"] == network)
        ax.set(xlabel="steps", ylabel=metric)
        ax.set_title(NETWORKS[network].title, fontsize=9)
    canvas.legend(
        handles.values(), handles.keys(), loc="outside right center", frameon=False
    )
    return canvas
