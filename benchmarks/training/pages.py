"""Tables of docs/training.md on steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tables import markdown

from .judge import steps_at
from .roster import NAMES, NETWORKS, RANKS, STEPPED, WIDE

if TYPE_CHECKING:
    from .judge import Row, Step

LINKS = {"100mbit": "100 Mbit/s", "1gbit": "1 Gbit/s"}
OURS = "topk"

# Targets of TopK 0.5 % + 8 bit on the wide tagger, relative to other methods.
WANTED = (
    ("dense step / ours", "dense", 4, "100mbit", 6.0),
    ("dense step / ours", "dense", 4, "1gbit", 1.4),
    ("dense step / ours", "dense", 8, "100mbit", 4.5),
    ("dense exposed communication / ours", "dense", 4, "100mbit", 15.0),
    ("step with the fp16 hook / ours", "fp16", 4, "100mbit", 1.0),
    ("step with the fp16 hook / ours", "fp16", 4, "1gbit", 1.0),
    ("step with torch's PowerSGD hook / ours", "torch-powersgd", 4, "100mbit", 1.0),
    ("step with torch's PowerSGD hook / ours", "torch-powersgd", 4, "1gbit", 1.0),
)


def steps(rows: list[Row], network: str) -> str:
    """Return a table with one row per method, link and number of ranks."""
    head = ["link", "ranks", "method", "step (ms)", "communication off (ms)"]
    head += ["exposed (ms)", "kB sent per step", "dense exposed / exposed"]
    head += ["dense step / step", "ceiling", "steps measured"]
    lines = []
    for ranks in STEPPED:
        for link, name in LINKS.items():
            found = steps_at(rows, network, ranks, link)
            for method in NAMES:
                if method in found and "dense" in found:
                    cells = _step(found[method], found["dense"])
                    lines.append([name, str(ranks), NAMES[method], *cells])
    return markdown(head, lines)


def _step(mine: Step, dense: Step) -> list[str]:
    return [
        f"{1e3 * mine.seconds:.0f}",
        f"{1e3 * mine.compute:.0f}",
        f"{1e3 * mine.exposed:.0f}",
        f"{mine.sent / 1e3:,.0f}",
        f"{dense.exposed / mine.exposed:.1f}x",
        f"{dense.seconds / mine.seconds:.2f}x",
        f"{dense.seconds / mine.compute:.2f}x",
        str(mine.measured),
    ]


def others(rows: list[Row]) -> str:
    """Return a table of the other networks, with one row per network and method."""
    head = ["network", "method"]
    for name in LINKS.values():
        head += [f"step at {name} (ms)", "exposed (ms)", "dense step / step"]
    lines = []
    for network, title in NETWORKS.items():
        at = {link: steps_at(rows, network, RANKS, link) for link in LINKS}
        if all("dense" in found for found in at.values()):
            lines += [
                [title, NAMES[method], *_on_links(at, method)]
                for method in NAMES
                if all(method in found for found in at.values())
            ]
    return markdown(head, lines) if lines else ""


def _on_links(at: dict[str, dict[str, Step]], method: str) -> list[str]:
    cells = []
    for found in at.values():
        mine, dense = found[method], found["dense"]
        cells += [f"{1e3 * mine.seconds:.0f}", f"{1e3 * mine.exposed:.0f}"]
        cells += [f"{dense.seconds / mine.seconds:.2f}x"]
    return cells


def wanted(rows: list[Row]) -> str:
    """Return the targets of the wide tagger and the measured ratios."""
    head = ["TopK 0.5 % + 8 bit", "ranks", "link", "target", "measured", "met"]
    lines = []
    for what, other, ranks, link, floor in WANTED:
        found = steps_at(rows, WIDE, ranks, link)
        cells = [what, str(ranks), LINKS[link], f"{floor:g}x"]
        if {other, OURS} <= found.keys():
            a, b = found[other], found[OURS]
            ratio = a.exposed / b.exposed if "exposed" in what else a.seconds / b.seconds
            cells += [f"{ratio:.2f}x", "yes" if ratio >= floor else "no"]
        else:
            cells += ["not measured yet", ""]
        lines.append(cells)
    return markdown(head, lines)
