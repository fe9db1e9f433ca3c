"""Tables of linear models and of coordinate descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tables import markdown

from .paper import TABLE, Published

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]

MODELS = {"logistic": "LR", "hinge": "SVM"}
NAMES = {
    "sparse": "sparse, ours",
    "dense": "dense, MPICH",
    "dense of used columns": "dense, used columns, MPICH",
    "single master": "dense, master",
}
AUTO = "auto"
# Of logistic regression: how many times faster than MPICH's dense sums a step must be.
FLOORS = {"Webspam-like": 4.0, "spam": 7.0, "URL-like": 8.0}
ABOVE_BOUND = 1.6  # how many times the wire bound communication may take


def emulated(rows: Iterable[Row]) -> list[Row]:
    """Return the measured rows."""
    return [row for row in rows if "bound" in row]


def simulated(rows: Iterable[Row]) -> list[Row]:
    """Return the simulated rows."""
    return [row for row in rows if row.get("kind") == "simulated"]


def ratio(rows: list[Row], row: Row) -> float:
    """Return the time of a step relative to that with sparse allreduce."""
    (ours,) = (r for r in rows if _job(r) == _job(row) and r["sums"] == "sparse")
    return float(row["step"] / ours["step"])


def _job(row: Row) -> tuple[str, str]:
    return row["data"], row["loss"]


def place(row: Row) -> tuple[str, int, str, str]:
    """Return the key of the paper's row that a simulated row corresponds to."""
    return row["system"], row["ranks"], row["data"], row["loss"]


def run(rows: list[Row]) -> str:
    """Return one row per data set, loss and type of allreduce, and the targets."""
    head = ["data", "model", "sums", "step (ms)", "computing (ms)", "communication (ms)"]
    head += ["MB", "wire bound (ms)", "communication / bound", "CPU (ms)"]
    head += ["full epoch (s)", "paper (s)", "step / sparse step"]
    return markdown(head, [_line(rows, row) for row in rows]) + floors(rows)


def _line(rows: list[Row], row: Row) -> list[str]:
    published = {(f"{p.data}-like", p.loss): p for p in TABLE if p.network == "gige"}
    paper = published.get(_job(row))
    theirs = ""
    gigabit = row["bytes"] > 1e8 * row["bound"]  # as the paper's links, or a tenth of them
    if paper and gigabit and row["sums"] in ("sparse", "dense"):
        theirs = _pair(paper.sparse if row["sums"] == "sparse" else paper.dense)
    times, whole = row["communicating"], row["full_pass"]
    return [
        row["data"],
        MODELS[row["loss"]],
        NAMES[row["sums"]],
        f"{1e3 * row['step']:.0f}",
        f"{1e3 * (row['step'] - times):.0f}",
        f"{1e3 * times:.0f}",
        f"{row['bytes'] / 1e6:.2f}",
        f"{1e3 * row['bound']:.1f}",
        f"{times / row['bound']:.2f}",
        f"{1e3 * row['processors']:.0f}",
        _pair((whole * row["step"], whole * times)),
        theirs,
        f"{ratio(rows, row):.1f}x",
    ]


def _pair(seconds: tuple[float, float]) -> str:
    return "{:.1f} ({:.1f})".format(*seconds)


def floors(rows: list[Row]) -> str:
    """Return the targets and whether this run met them; nothing without dense rows."""
    head = ["LR on", "wanted", "dense step / sparse step", "met"]
    head += ["wanted", "communication / wire bound", "met"]
    lines = []
    for data, floor in FLOORS.items():
        here = {r["sums"]: r for r in rows if _job(r) == (data, "logistic")}
        if not here.keys() >= {"sparse", "dense"}:
            continue
        found = ratio(rows, here["dense"])
        above = here["sparse"]["communicating"] / here["sparse"]["bound"]
        cells = [data, f"{floor:g}x", f"{found:.1f}x", "yes" if found >= floor else "no"]
        cells += [
            f"{ABOVE_BOUND:g}",
            f"{above:.2f}",
            "yes" if above <= ABOVE_BOUND else "no",
        ]
        lines.append(cells)
    return f"\nTargets:\n\n{markdown(head, lines)}" if lines else ""


def others(rows: list[Row]) -> str:
    """Return the paper's other eight rows and the simulated ones, in seconds per epoch."""
    head = ["system", "nodes", "data", "model", "paper: dense", "sparse", "ratio"]
    head += ["dense / its bound", "ours: dense", "sparse, as in the paper", "ratio"]
    head += ["by auto", "ratio", "which", "how"]
    at = {(*place(row), row["sums"]): row for row in rows}
    lines = []
    for p in TABLE:
        key = (p.system, p.ranks, p.data, p.loss)
        if (*key, AUTO) not in at:
            continue
        dense, sparse, auto = (at[*key, sums] for sums in ("dense", "sparse", AUTO))
        cells = [p.system, str(p.ranks), p.data, MODELS[p.loss]]
        cells += [_pair(p.dense), _pair(p.sparse), f"{p.ratio[0]:.2f}x"]
        cells += [f"{p.above_bound:.0f}x", _pass(p, dense)]
        for row in (sparse, auto):
            cells += [_pass(p, row), f"{dense['step'] / row['step']:.2f}x"]
        lines.append([*cells, auto["algorithm"], "simulated"])
    return markdown(head, lines)


def _pass(published: Published, row: Row) -> str:
    return _pair((published.steps * row["step"], published.steps * row["communicating"]))


def descent(rows: list[Row]) -> str:
    """Return one row per type of allgather in coordinate descent."""
    head = ["allgather", "epoch (s)", "computing (s)", "communication (s)", "rounds"]
    head += ["ms per round", "kB per round", "wire bound (s)", "CPU (s)", "paper (s)"]
    paper = {"sparse": (26.0, 4.5), "dense": (49.0, 24.0)}
    names = {"sparse": "sparse, ours", "dense": "dense, MPICH"}
    lines = [
        [
            names[row["sums"]],
            f"{row['epoch']:.1f}",
            f"{row['epoch'] - row['communicating']:.1f}",
            f"{row['communicating']:.1f}",
            f"{row['rounds']:,}",
            f"{1e3 * row['epoch'] / row['rounds']:.2f}",
            f"{row['bytes'] / 1e3:.0f}",
            f"{row['bound']:.2f}",
            f"{row['processors']:.1f}",
            _pair(paper[row["sums"]]),
        ]
        for row in rows
    ]
    return markdown(head, lines)
