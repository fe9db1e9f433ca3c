"""Pictures of topologies: one panel per step, with matplotlib."""

from __future__ import annotations

import io
import math
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .topologies.shifts import ShiftTopology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .topologies import Topology

    Places = NDArray[np.float64]

BLUE, INK, GREY = "#2b6cb0", "#1f2933", "#8a94a3"
MAX_STEPS = 12  # panels per topology
MAX_LABELS = 64  # ranks that have room for their numbers
MAX_EDGES = 20_000  # lines that a picture can show
COLUMNS, PANEL = 4, 3.2  # inches
STUB = 0.42  # length of an edge that leaves the grid


def svg(topology: Topology) -> str | None:
    """Return a picture as SVG, or None if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return None
    buffer = io.StringIO()
    draw([topology]).savefig(buffer, format="svg")
    return buffer.getvalue()


def draw(topologies: Sequence[Topology]) -> Any:
    """Return a matplotlib figure of topologies, with one panel per step of each."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [(t, s) for t in topologies for s in range(min(t.period, MAX_STEPS))]
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure((PANEL * columns, (PANEL + 0.25) * rows), layout="constrained")
    FigureCanvasAgg(figure)
    places = {id(t): _places(t) for t in topologies}
    for number, (topology, step) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        _panel(axes, topology, step, places[id(topology)])
    return figure


def _panel(axes: Any, topology: Topology, step: int, places: Places) -> None:
    from matplotlib.collections import LineCollection

    n = topology.size
    lines, widths, arrows = _edges(topology, step, places)
    if len(lines) <= MAX_EDGES:
        alpha = max(0.08, min(0.8, 120 / max(1, len(lines))))
        collection = LineCollection(
            lines, linewidths=widths, colors=GREY, alpha=alpha, zorder=1, clip_on=False
        )
        axes.add_collection(collection)
        if n <= MAX_LABELS:
            _arrow_heads(axes, arrows)
    dot = max(2.0, min(260.0, (5000 if n <= MAX_LABELS else 1500) / n))
    axes.scatter(*places.T, dot, color=BLUE, zorder=3, linewidths=0, clip_on=False)
    if n <= MAX_LABELS:
        size = 9 if n <= 20 else 7 if n <= 36 else 5
        for rank, (x, y) in enumerate(places):
            axes.text(
                x, y, rank, color="white", size=size, ha="center", va="center", zorder=4
            )
    title = topology.name
    if topology.period > 1:
        shown = "" if topology.period <= MAX_STEPS else f", {MAX_STEPS} shown"
        title += f"\nstep {step} of {topology.period}{shown}"
    elif len(lines) > MAX_EDGES:
        title += f"\n{len(lines):,} edges are not drawn"
    axes.set_title(title, size=9, color=INK)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.axis("off")


def _edges(
    topology: Topology, step: int, places: Places
) -> tuple[list[Any], list[float], list[Any]]:
    """Return the lines, their widths, and the arrows of edges in one direction only."""
    wraps = _wraps(topology)
    lines, widths, arrows = [], [], []
    for rank in range(topology.size):
        _, weights = topology.weights(rank, step)
        receivers = set(topology.receivers(rank, step))
        for j, weight in weights.items():
            if j in receivers and j < rank and not wraps:
                continue  # both directions are one line
            width = 0.6 + 2.4 * weight
            start, end = places[j], places[rank]
            if wraps and np.abs(start - end).max() > 1.5:
                # Around the edge of the grid: a short line that leaves the rank.
                direction = np.sign(end - start) * (np.abs(end - start) > 1.5)
                lines.append([end, end + STUB * direction])
            else:
                lines.append([start, end])
            widths.append(width)
            if j not in receivers:
                arrows.append((start, end))
    return lines, widths, arrows


def _arrow_heads(axes: Any, arrows: Sequence[tuple[Places, Places]]) -> None:
    for start, end in arrows:
        middle = start + 0.62 * (end - start)
        axes.annotate(
            "",
            xy=middle,
            xytext=middle - 0.01 * (end - start),
            arrowprops={"arrowstyle": "-|>", "color": GREY, "mutation_scale": 8},
            zorder=2,
        )


def _wraps(topology: Topology) -> bool:
    """Return whether the topology is drawn as a grid that wraps around."""
    return isinstance(topology, ShiftTopology) and len(topology.shape) == 2


def _places(topology: Topology) -> Places:
    """Return the position of every rank: a grid, a hub with its leaves, or a circle."""
    n = topology.size
    if isinstance(topology, ShiftTopology) and len(topology.shape) == 2:
        columns = topology.shape[1]
        return np.array([[r % columns, -(r // columns)] for r in range(n)], float)
    degrees = [len(topology.neighbors(rank)) for rank in range(n)]
    if topology.period == 1 and n > 2 and degrees == [n - 1] + [1] * (n - 1):
        return np.vstack([np.zeros((1, 2)), _circle(n - 1)])
    if topology.period == 1 and len(set(degrees)) > 1 and find_spec("networkx"):
        return _spring(topology)
    return _circle(n)


def _circle(n: int) -> Places:
    """Return n places on a circle, from the top clockwise."""
    angles = math.pi / 2 - 2 * math.pi * np.arange(n) / max(1, n)
    radius = 1.0 if n > 1 else 0.0
    return radius * np.stack([np.cos(angles), np.sin(angles)], 1)


def _spring(topology: Topology) -> Places:
    """Return places at which edges have similar lengths, for irregular graphs."""
    networkx: Any = import_module("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(range(topology.size))
    for rank in range(topology.size):
        graph.add_edges_from((rank, j) for j in topology.neighbors(rank))
    places = networkx.spring_layout(graph, seed=0, iterations=200)
    return np.array([places[rank] for rank in range(topology.size)])
