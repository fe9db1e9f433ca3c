"""Figure of the time of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claims.drawing import ORANGE, axes

from .judge import steps_at
from .pages import LINKS
from .roster import NAMES, WIDE, WIDE_RANKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .judge import Row


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
