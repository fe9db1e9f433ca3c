"""Claim 15: Table 2 of the paper, emulated at 1 Gbit/s and simulated elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table2 import pages
from table2.paper import TABLE
from table2.simulated import measure

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = min(row.ratio[0] for row in TABLE)


def answer(rows: list[Row]) -> Answer:
    """Hit if all ten rows reach the smallest speedup of the paper."""
    here, there = pages.emulated(rows), pages.simulated(rows)
    gains = {**_emulated(here, "dense"), **_simulated(there)}
    short = [name for name, gain in gains.items() if gain < LEAST]
    masters = [
        f"{gain:.0f}x ({name})" for name, gain in _emulated(here, "single master").items()
    ]
    ours = (
        f"{len(gains) - len(short)} of {len(gains)} rows gain at least {LEAST}x over a "
        f"dense allreduce at or near link bandwidth: {min(gains.values()):.2f}x to "
        f"{max(gains.values()):.1f}x; over a single master {', '.join(masters)}"
    )
    return Answer(not short, ours, _why(short), _details(here, there))


def _emulated(rows: list[Row], sums: str) -> dict[str, float]:
    """Return the speedup of logistic regression over a baseline, by row."""
    return {
        f"{row['data']}, 1 Gbit/s": pages.ratio(rows, row)
        for row in rows
        if row["loss"] == "logistic" and row["data"] != "spam" and row["sums"] == sums
    }


def _simulated(rows: list[Row]) -> dict[str, float]:
    """Return the speedup of `auto` over dense allreduce, by row."""
    at = {pages.place(row): row["step"] for row in rows if row["sums"] == "dense"}
    return {
        f"{row['data']} {pages.MODELS[row['loss']]}, {row['system']}, {row['ranks']} nodes": (
            at[pages.place(row)] / row["step"]
        )
        for row in rows
        if row["sums"] == pages.AUTO
    }


def _why(short: list[str]) -> str:
    above = sorted(row.above_bound for row in TABLE)
    why = (
        f"the paper's dense allreduces took {above[0]:.0f} to {above[-1]:.0f} times the "
        f"time of their "
        f"bytes on the links, ours are MPICH's, or run at link bandwidth"
    )
    if short:
        return f"{why}; a smaller speedup for {'; '.join(short)}"
    return why


def _details(here: list[Row], there: list[Row]) -> str:
    return (
        f"*Emulated*: 8 ranks with links of 1 Gbit/s on one machine, 1000 rows per rank and "
        f"step (spam: all mails in one step). [linear.md](linear.md#table-2-of-the-paper) has "
        f"the table, with bytes and bounds, and the method.\n{pages.floors(here)}\n"
        f"*Simulated*: real gradients of generated rows, reduced under the virtual clock by the "
        f"same collectives, dense ones by recursive halving and doubling at link bandwidth; "
        f"computing takes the time of one of our cores. Seconds per epoch over all rows of the "
        f"paper's data, communication in parentheses.\n\n{pages.others(there)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot a step of logistic regression by type of allreduce, with its wire bound."""
    from .drawing import axes

    here = [row for row in pages.emulated(rows) if row["loss"] == "logistic"]
    names = list(dict.fromkeys(row["data"] for row in here))
    canvas, found = axes(len(names), (10.5, 2.9))
    for ax, name in zip(found, names, strict=True):
        _panel(ax, [row for row in here if row["data"] == name], here)
        features = next(row["features"] for row in here if row["data"] == name)
        ax.set_title(f"{name}, {features:,} features", fontsize=10)
        ax.set_xlabel("seconds per step")
    canvas.suptitle(
        "LR, 8 ranks, emulated 1 Gbit/s; grey: computing, colour: communication, "
        "black: wire bound",
        fontsize=10,
    )
    return canvas


def _panel(ax: Axes, rows: list[Row], everything: list[Row]) -> None:
    from .drawing import COLOURS

    for place, row in enumerate(rows):
        computing = row["step"] - row["communicating"]
        ax.barh(place, computing, 0.7, color="0.72")
        ax.barh(place, row["communicating"], 0.7, left=computing, color=COLOURS[place])
        ends = computing, computing + row["bound"]
        ax.plot(ends, [place, place], "-", color="black", lw=1.5)
        text = f" {row['step']:.2f} s, {pages.ratio(everything, row):.1f}x"
        ax.text(row["step"], place, text, va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [pages.NAMES[row["sums"]] for row in rows])
    ax.set_xlim(0, 1.5 * max(row["step"] for row in rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(visible=False)


CLAIM = Claim(
    number=15,
    title="Linear models: Table 2",
    text="an epoch with sparse allreduce is 1.33x to 20.26x faster, on Aries, InfiniBand "
    "and Ethernet",
    source="the SparCML paper",
    how="1 Gbit/s emulated, the others simulated",
    seed=0,
    cases=[("url",), ("webspam",)],
    measure=measure,
    answer=answer,
    figures={"table-2": figure},
    also={"table2": "make bench-linear"},
)
