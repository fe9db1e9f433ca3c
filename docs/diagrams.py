"""Draw the messages of each collective from traces of real runs: `make docs`.

Each collective runs once on threads; its trace has every message with its round and its
size. The vertical axis shows rounds instead of time, so that the figures are the same on
every machine. The width of an arrow shows the size of its message. Collectives whose
messages take the same routes share a figure (`SHARED_FIGURES` of docs/collect.py).
"""

from __future__ import annotations

import io
import json
import runpy
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.transport import Nodes
from sparcml.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = Path(__file__).with_name("figures")
RANKS, SIZE, DENSITY = 8, 20_000, 0.05
FULLER = {name: 1.0 for name, a in ALLREDUCES.items() if a.is_dense}
FULLER["dsar_split_allgather"] = 0.3

PAGE = runpy.run_path(str(Path(__file__).with_name("collect.py")))
SHARED, WITHOUT = PAGE["SHARED_FIGURES"], PAGE["WITHOUT_FIGURE"]

# Communicator method that uses a building block.
METHODS = {
    "agree": "explain",
    "split": "reduce_scatter",
    "allgather": "allgather",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
FOLDED = "ssar_recursive_double"  # on a number of ranks that is not a power of two
MULTI_NODE, TWO_NODES = "hierarchical", Nodes((0, 0, 0, 0, 1, 1, 1, 1))

STYLE = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "sparcml"}
COLOURS = [f"C{i}" for i in (0, 1, 2, 3, 4, 5, 6, 8)]
INCH, RANK, LEFT, RIGHT = 0.3, 0.5875, 0.85, 1.45  # a unit of height; widths
SLOPE, STEP, GAP = 2.0, 1.2, 0.7  # height of a lone step, of one of many; between rounds
HEAD = 2.2  # above the first round


class Message(NamedTuple):
    """One arrow."""

    step: int  # number of earlier messages of the sender in the round
    sender: int
    receiver: int
    nbytes: int


class Band(NamedTuple):
    """One round of one call."""

    title: str
    messages: list[Message]

    @property
    def steps(self) -> int:
        """Largest number of messages that a rank sends."""
        return 1 + max((m.step for m in self.messages), default=0)

    @property
    def height(self) -> float:
        """Height of the band."""
        return SLOPE if self.steps == 1 else STEP * self.steps


def main() -> None:
    """Write all figures."""
    for name in names():
        FIGURES.joinpath(f"{name}.svg").write_text(figure(name))


def names() -> list[str]:
    """Return the names of all figures, in the order of algorithms.md."""
    sections = [*ALLREDUCES, *METHODS, "fold"]
    return [name for name in sections if name not in SHARED and name not in WITHOUT]


def members(name: str) -> list[str]:
    """Return the collectives that a figure shows, the one that it is drawn from first."""
    return [name, *(other for other, shared in SHARED.items() if shared == name)]


def _vector(rank: int, density: float) -> sparcml.Stream:
    rng = np.random.default_rng(rank)
    indices = np.sort(rng.choice(SIZE, int(density * SIZE), replace=False))
    return sparcml.Stream(SIZE, indices, np.ones(len(indices), np.float32))


def _work(comm: sparcml.Communicator, name: str) -> None:
    x = _vector(comm.rank, FULLER.get(name, DENSITY))
    if name == MULTI_NODE:
        comm._transport.nodes = TWO_NODES
    if name in METHODS:
        getattr(comm, METHODS[name])(x)
    else:
        comm.allreduce(x, algorithm=FOLDED if name == "fold" else name)


def bands(name: str) -> tuple[int, list[Band]]:
    """Return the number of ranks and the rounds of a collective, from a trace."""
    ranks = 6 if name == "fold" else RANKS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"

        def traced(comm: sparcml.Communicator) -> None:
            if name in ("broadcast", "reduce"):
                _work(comm, name)  # the first call also compares the root
            comm.trace(path)
            _work(comm, name)

        sparcml.launch(traced, ranks)
        events = json.loads(path.read_text())["traceEvents"]
    return ranks, _rounds([e for e in events if e["ph"] == "X"])


def _rounds(events: list[dict[str, Any]]) -> list[Band]:
    by_round: dict[tuple[int, int], Band] = {}
    sent: Counter[tuple[int, int, int]] = Counter()
    for event in events:
        about, rank = event["args"], event["pid"]
        name, _, sequence = about["call"].partition(" #")
        if event["name"] == "send":
            number = about.get("round", 0)
            key = int(sequence), number
            band = by_round.setdefault(key, Band(f"{name}\nround {number}", []))
            step = sent[*key, rank]
            sent[*key, rank] += 1
            band.messages.append(Message(step, rank, about["peer"], about["bytes"]))
    several = len({sequence for sequence, _ in by_round}) > 1
    return [
        # Ranks add their events to the trace in the order in which they finish.
        Band(title if several else title.split("\n")[1], sorted(messages))
        for _, (title, messages) in sorted(by_round.items())
    ]


def figure(name: str) -> str:
    """Return the figure as SVG."""
    shown = {member: bands(member) for member in members(name)}
    ranks, rounds = shown[name]
    shown = {m: found for m, found in shown.items() if len(found[1]) == len(rounds)}
    where = " on 2 nodes" if name == MULTI_NODE else ""
    heading = f"{', '.join(shown)}: {ranks} ranks{where}, {SIZE} float32 values"
    if len(shown) == 1:
        heading += f", density {FULLER.get(name, DENSITY):.0%}"
    height = sum(band.height + GAP for band in rounds)
    scale = 1.0 if len(rounds) < 10 else 0.6
    head = HEAD / scale
    width = LEFT + ranks * RANK + RIGHT * len(shown)
    with mpl.rc_context(STYLE):
        inches = width, (height + head) * INCH * scale
        canvas = Figure(figsize=inches, facecolor="white")
        ax = canvas.add_axes(
            (LEFT / width, 0, ranks * RANK / width, 1),
            xlim=(-0.5, ranks - 0.5),
            ylim=(height, -head),
        )
        ax.axis("off")
        ax.text((ranks - 1) / 2, -0.8 * head, heading, ha="center", va="center")
        for rank in range(ranks):
            ax.plot([rank] * 2, [-0.3, height - 0.2], color="0.8", lw=1, zorder=0)
            ax.text(
                rank, -0.35 * head, f"rank {rank}", ha="center", va="center", weight="bold"
            )
        _sizes(ax, shown, -0.35 * head)
        largest = max(m.nbytes * b.steps for b in rounds for m in b.messages)
        top = 0.0
        for band in rounds:
            _draw(ax, band, top, largest)
            top += band.height + GAP
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _sizes(ax: Axes, shown: dict[str, tuple[int, list[Band]]], above: float) -> None:
    """Write the sizes of the messages of each round, one column per collective."""
    for number, (name, (ranks, rounds)) in enumerate(shown.items()):
        x, top = ranks - 0.4 + number * RIGHT / RANK, 0.0
        if len(shown) > 1:
            title = f"{name},\ndensity {FULLER.get(name, DENSITY):.0%}"
            ax.text(x, above, title, ha="left", va="center", fontsize=7.5)
        for band in rounds:
            ax.text(x, top + band.height / 2, _size(band), ha="left", va="center")
            top += band.height + GAP


def _draw(ax: Axes, band: Band, top: float, largest: int) -> None:
    middle = top + band.height / 2
    reach = SLOPE if band.steps == 1 else 0.9 * STEP
    ax.axhspan(top - 0.15, top + band.height + 0.15, color="0.96", zorder=-1)
    ax.text(-0.6, middle, band.title, ha="right", va="center")
    for m in band.messages:
        start = (m.sender, y := top + m.step * STEP)
        end = (m.receiver, y + reach)
        colour = COLOURS[m.sender % len(COLOURS)]
        width = 0.6 + 2.4 * m.nbytes / largest
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": width, "joinstyle": "miter"}
        arrow |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 7 + width}
        ax.annotate("", end, start, arrowprops=arrow)
        ax.plot(*start, "o", color=colour, ms=4)


def _size(band: Band) -> str:
    sizes = [m.nbytes for m in band.messages]
    smallest, largest = format_bytes(min(sizes)), format_bytes(max(sizes))
    count = "1 message" if len(sizes) == 1 else f"{len(sizes)} messages"
    return f"{count} of\n{smallest if smallest == largest else f'{smallest} to {largest}'}"


if __name__ == "__main__":
    main()
