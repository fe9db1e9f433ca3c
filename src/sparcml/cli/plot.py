"""Plots of training runs: loss, time and bytes."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sparcml.cli.fit_progress import number
from sparcml.errors import how_to_install

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparcml.linear.training.history import History

BLUE, ORANGE, GREY = "#2b6cb0", "#d9730d", "#b8bec7"
INSTALL = f"a plot needs matplotlib; install it with: {how_to_install('plot')}"


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def picture(path: Path, draw: Callable[[], None]) -> None:
    """Draw a plot and print its path, or print what is missing."""
    if can_draw():
        draw()
        typer.echo(f"Plot: {path}")
    else:
        typer.echo(f"No plot: {INSTALL}")


def check_plot(path: Path | None) -> None:
    """Check that a plot can be written, before anything long starts.

    Raises:
        OSError: If matplotlib is missing.
        ValueError: If matplotlib does not support the file type.
    """
    if path is None:
        return
    if not can_draw():
        raise OSError(INSTALL)
    _silence_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    supported = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in supported:
        suffixes = ", ".join(sorted(f".{suffix}" for suffix in supported))
        raise ValueError(f"plot must end in one of {suffixes}, got {path.name!r}")


def _silence_matplotlib() -> None:
    """Hide the warnings of a first import, such as that it builds its font cache."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def figure(width: float, height: float) -> Any:
    """Return an empty figure, which needs no screen."""
    _silence_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    empty = Figure((width, height), layout="constrained")
    FigureCanvasAgg(empty)
    return empty


def plain(axes: Any) -> None:
    """Remove the frame and add a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)


def draw(path: Path, history: History, loss: str, ranks: int) -> None:
    """Plot the loss over time, and the time of each epoch."""
    epochs = history.epochs
    ends = np.cumsum([each.seconds for each in epochs])
    canvas = figure(9, 3.6)
    left, right = canvas.subplots(1, 2)
    left.plot(
        ends, [each.loss for each in epochs], "o-", color=BLUE, ms=3, label="training"
    )
    validation = [
        (end, each.validation_loss)
        for end, each in zip(ends, epochs, strict=True)
        if each.validation_loss
    ]
    if validation:
        left.plot(
            *zip(*validation, strict=True), "s-", color=ORANGE, ms=3, label="validation"
        )
        left.legend(frameon=False)
    left.set(xlabel="seconds", ylabel=f"{loss} loss", title="Loss of each epoch")
    left.set_xlim(left=0)
    numbers = np.arange(1, len(epochs) + 1)
    communication = np.array([each.communication_seconds for each in epochs])
    compute = np.array([each.seconds for each in epochs]) - communication
    right.bar(numbers, compute, color=BLUE, label="compute")
    if ranks > 1:
        right.bar(
            numbers, communication, bottom=compute, color=ORANGE, label="communication"
        )
    right.legend(frameon=False)
    right.set(xlabel="epoch", ylabel="seconds", title=_bytes(history, ranks))
    right.xaxis.get_major_locator().set_params(integer=True)
    for axes in (left, right):
        plain(axes)
    canvas.savefig(path, dpi=150)


def _bytes(history: History, ranks: int) -> str:
    if ranks == 1:
        return "Time"
    title = f"Rank 0 sent {number(history.bytes)}B"
    if history.dense_bytes:
        title += f"; dense ring: {number(history.dense_bytes)}B"
    return title
