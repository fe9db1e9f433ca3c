"""A picture of a run: what the loss did, and what time and bytes were spent on."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sparcml.linear.training.bar import number

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparcml.linear.training.history import History

BLUE, ORANGE, GREY = "#2b6cb0", "#d9730d", "#b8bec7"
WANTED = "a picture needs matplotlib; install it with: pip install sparcml[plot]"


def can_draw() -> bool:
    """Whether there is something to draw with."""
    return find_spec("matplotlib") is not None


def picture(path: Path, draw: Callable[[], None]) -> None:
    """Draw it if that is possible, and say where it is, or what is missing."""
    if can_draw():
        draw()
        typer.echo(f"The picture: {path}")
    else:
        typer.echo(f"No picture: {WANTED}")


def check_plot(path: Path | None) -> None:
    """Raise if there can be no picture, before anything long is begun.

    Raises:
        OSError: If matplotlib is missing.
        ValueError: If it does not know the kind of file.
    """
    if path is None:
        return
    if not can_draw():
        raise OSError(WANTED)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in known:
        some = ", ".join(sorted(f".{kind}" for kind in known))
        raise ValueError(f"plot must end in one of {some}, got {path.name!r}")


def figure(width: float, height: float) -> Any:
    """An empty one, which needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure((width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def plain(axes: Any) -> None:
    """Only the lines that are needed."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)


def draw(path: Path, history: History, loss: str, ranks: int) -> None:
    """Loss by time, and the time of each pass, in two parts."""
    passes = history.passes
    ends = np.cumsum([each.seconds for each in passes])
    picture = figure(9, 3.6)
    left, right = picture.subplots(1, 2)
    left.plot(
        ends, [each.loss for each in passes], "o-", color=BLUE, ms=3, label="training"
    )
    judged = [(t, p.held_out) for t, p in zip(ends, passes, strict=True) if p.held_out]
    if judged:
        left.plot(*zip(*judged, strict=True), "s-", color=ORANGE, ms=3, label="held out")
        left.legend(frameon=False)
    left.set(xlabel="seconds", ylabel=f"{loss} loss", title="Loss of each pass")
    left.set_xlim(left=0)
    numbers = np.arange(1, len(passes) + 1)
    talking = np.array([each.communicating for each in passes])
    working = np.array([each.seconds for each in passes]) - talking
    right.bar(numbers, working, color=BLUE, label="computing")
    if ranks > 1:
        right.bar(numbers, talking, bottom=working, color=ORANGE, label="communicating")
    right.legend(frameon=False)
    right.set(xlabel="pass", ylabel="seconds", title=_bytes(history, ranks))
    right.xaxis.get_major_locator().set_params(integer=True)
    for axes in (left, right):
        plain(axes)
    picture.savefig(path, dpi=150)


def _bytes(history: History, ranks: int) -> str:
    if ranks == 1:
        return "Time"
    title = f"Rank 0 sent {number(history.bytes)}B"
    if history.dense_bytes:
        title += f"; dense sums: {number(history.dense_bytes)}B"
    return title
