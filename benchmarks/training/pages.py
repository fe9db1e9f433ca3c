"""Tables of docs/training.md."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING

from tables import markdown

from .judge import curve, goal, scores, steps_at, until
from .roster import NAMES, NETWORKS, RANKS, STEPPED, WIDE

if TYPE_CHECKING:
    from .judge import Row, Score, Step
    from .roster import Network

LINKS = {"100mbit": "100 Mbit/s", "1gbit": "1 Gbit/s"}
OURS = "topk"
KEPT = 5e-6  # relative rounding of saved numbers

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


def accuracy(rows: list[Row], network: str) -> str:
    """Return a table with one row per method."""
    about, found = NETWORKS[network], scores(rows, network)
    metric = next(row["metric"] for row in rows if row["network"] == network)
    head = ["method", metric, "difference to dense", "tolerance", "met", "seeds"]
    head += ["MB sent per rank", "compression ratio"]
    lines = [
        [NAMES[name], *_score(found[name], about, name)] for name in NAMES if name in found
    ]
    return markdown(head, lines)


def _score(s: Score, about: Network, method: str) -> list[str]:
    within = about.within
    apart = f"{s.apart:+.2%}" if about.relative else f"{s.apart:+.2f}"
    allowed = f"-{within:.0%}" if about.relative else f"-{within:g}"
    met = "yes" if s.within else "no"
    sent = [f"{s.sent / 1e6:,.1f}", f"{s.fewer:,.1f}x"]
    if about.rows:  # torch does not count the bytes of sparse rows
        sent = ["not counted" if method == "dense" else sent[0], ""]
    return [f"{s.score:.2f}", apart, allowed, met, str(s.seeds), *sent]


def reaching(accuracy: list[Row], stepped: list[Row], network: str) -> str:
    """Return the steps to the target times the seconds per step, by method."""
    found = scores(accuracy, network)
    if "dense" not in found:
        return ""
    about, target = NETWORKS[network], goal(network, found["dense"])
    head = ["link", "method", f"steps to {target:.2f}", "step (ms)", "product (s)"]
    lines = []
    for link, name in LINKS.items():
        for method, step in steps_at(stepped, network, RANKS, link).items():
            points = curve(accuracy, network, method)
            made = until(points, target, higher=about.higher)
            cells = [name, NAMES[method], "never" if made is None else f"{made:.0f}"]
            cells += [f"{1e3 * step.seconds:.1f}"]
            cells += ["" if made is None else f"{made * step.seconds:.1f}"]
            if points:
                lines.append(cells)
    return markdown(head, lines) if lines else ""


def checked(epochs: list[Row], accuracy: list[Row], stepped: list[Row]) -> str:
    """Compare the first epoch on links with the product, and with the run without links."""
    head = ["network", "method", "link", "steps", "product (s)", "run (s)", "run / product"]
    head += ["loss and score without links"]
    lines = []
    for row in epochs:
        step = steps_at(stepped, row["network"], RANKS, row["link"])[row["method"]]
        product, bits = row["steps_made"] * step.seconds, _first(accuracy, row)
        cells = [NETWORKS[row["network"]].title, NAMES[row["method"]], LINKS[row["link"]]]
        cells += [str(row["steps_made"]), f"{product:.1f}", f"{row['seconds']:.1f}"]
        cells += [f"{row['seconds'] / product:.2f}", "the same" if bits else "differ"]
        lines.append(cells)
    return markdown(head, lines)


def _first(accuracy: list[Row], row: Row) -> bool:
    """Return whether the first epoch of seed 0 has the same loss and score."""
    return any(
        (r["network"], r["method"], r["seed"]) == (row["network"], row["method"], 0)
        and isclose(r["losses"][0], row["loss"], rel_tol=KEPT)
        and isclose(r["scores"][0], row["score"], rel_tol=KEPT)
        for r in accuracy
    )
