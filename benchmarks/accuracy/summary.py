"""Summaries of accuracy: the recommended methods, all methods by optimizer, a delay alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tables import markdown

from sparcml import Compressed, Method
from sparcml.aggregate.schedule import at

from .judge import complete
from .roster import DENSE, LATE, ROSTER, Setting, build
from .texts import OPTIMIZERS, described, title, tolerance, with_unit, yes
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from .jobs import Row
    from .judge import Judged

RECOMMENDED = "recommended"
FEW = 2  # world size at which all methods run
INCOMPLETE = "not complete yet"

DELAY = """\
### What a delay costs

Dense gradients, exact and uncompressed, that are applied one step late. Error feedback delays a
part of each gradient, often by more than one step, and biased methods need it. Where the delay
alone exceeds the tolerance, use an unbiased quantizer without error feedback.

"""

ABLATION = """\
### What 0.1 % takes

At a ratio of 1 / n a value waits n steps on average: in runs of 700 steps, at 0.1 %, most values
are not sent once after the warm-up. A higher learning rate does not make up for that. On the word
LSTM a density that falls over the run, with the momentum after the sum, helps most; on the residual
network ten times the ratio. The warm-up and the small tensors are most of the bytes of DGC at
0.1 %, so that 200 times fewer bytes need runs several times as long.
"""
ABLATED = ("dgc0.1", "dgc1", "falling0.1", "falling")


def recommended(rows: list[Row]) -> str:
    """Return the recommended method of each optimizer, and its results."""
    judged = complete(rows)
    found = [row for row in judged if row.method == RECOMMENDED and row.multiple == 1]
    parts = ["### Recommended methods\n"]
    for optimizer, name in OPTIMIZERS.items():
        work = next(w for w in WORKLOADS.values() if w.optimizer == optimizer)
        method = build(RECOMMENDED, Setting(work, FEW, 0, work.learning_rate))
        parts.append(f"- {name}: {described(method)}.")
    head = ["optimizer", "network", "ranks", "difference", "tolerance", "met"]
    lines = []
    for optimizer, name in OPTIMIZERS.items():
        for network, work in WORKLOADS.items():
            if work.optimizer == optimizer:
                here = [row for row in found if row.network == network]
                lines += [[name, work.title, *_cells(row)] for row in here]
                if not here:
                    lines.append([name, work.title, "", INCOMPLETE, "", "", ""])
    return "\n".join([*parts, "", markdown([*head, "compression ratio"], lines)])


def _cells(row: Judged) -> list[str]:
    limit = tolerance(WORKLOADS[row.network])
    met = yes(within=row.within)
    return [str(row.ranks), with_unit(row), limit, met, f"{row.ratio:,.1f}x"]


def delay(rows: list[Row]) -> str:
    """Return the section on late gradients; empty without complete results."""
    found = complete(rows)
    dense = {r.network: r for r in found if r.method == DENSE and r.multiple == 1}
    head = ["network", "optimizer", "dense", "one step late", "difference", "tolerance"]
    lines = []
    for row in found:
        if row.method == LATE and row.multiple == 1:
            work = WORKLOADS[row.network]
            late = "diverged" if row.score is None else f"{row.score:.3f}"
            cells = [
                work.title,
                OPTIMIZERS[work.optimizer],
                f"{dense[row.network].score:.3f}",
            ]
            lines.append([*cells, late, *_cells(row)[1:4], str(row.seeds)])
    if not lines:
        return ""
    return f"{DELAY}\n{markdown([*head, 'met', 'seeds'], lines)}"


def ablation(rows: list[Row]) -> str:
    """Return the section on DGC and its parts; empty without complete results."""
    found = [r for r in complete(rows) if r.method in ABLATED and r.ranks == FEW]
    networks = [n for n in WORKLOADS if sum(r.network == n for r in found) > 1]
    cells = {(title(row), row.network): row for row in found}
    lines = [
        [name, *(_cell(cells.get((name, n))) for n in networks)]
        for name in dict.fromkeys(title(r) for r in found)
    ]
    if not lines:
        return ""
    head = ["method", *(WORKLOADS[n].title for n in networks)]
    return f"{ABLATION}\n{markdown(head, lines)}"


def by_optimizer(rows: list[Row]) -> str:
    """Return a table per optimizer: a row per method, a column per network, 2 ranks.

    Methods are at the dense learning rate and, if they have one, at their own.
    """
    found = [row for row in complete(rows) if row.ranks == FEW and is_default(row)]
    parts = []
    for optimizer, name in OPTIMIZERS.items():
        networks = [n for n, w in WORKLOADS.items() if w.optimizer == optimizer]
        cells = {(title(row), row.network): row for row in found if row.network in networks}
        titles = dict.fromkeys(name for name, _ in cells)
        if titles:
            head = ["method", *(WORKLOADS[n].title for n in networks)]
            lines = [[t, *(_cell(cells.get((t, n))) for n in networks)] for t in titles]
            parts.append(f"Under {name}:\n\n{markdown(head, lines)}")
    return "\n".join(parts)


def expectations(rows: list[Row]) -> dict[str, str]:
    """Return what to expect of a sparsifier, quantizer or method, by the name of its class.

    Of a method with several parts it is the sparsifier's, then the quantizer's. Results are those
    of 2 ranks.
    """
    found: dict[tuple[str, str, str], list[Judged]] = {}
    for row in complete(rows):
        if row.ranks == FEW and is_default(row) and (name := principal(row)):
            key = name, WORKLOADS[row.network].optimizer, title(row)
            found.setdefault(key, []).append(row)
    texts: dict[str, list[str]] = {}
    for (name, used, method), results in found.items():
        within = sum(row.within for row in results)
        worst = max(results, key=excess)
        text = (
            f"{method} under {OPTIMIZERS[used]} within the tolerance on {within} of "
            f"{len(results)} networks, worst {with_unit(worst)} on the "
            f"{WORKLOADS[worst.network].title}"
        )
        texts.setdefault(name, []).append(text)
    return {name: "; ".join(parts) for name, parts in texts.items()}


def principal(row: Judged) -> str:
    """Return the class whose results these are; empty if it is not one of sparcml."""
    work = WORKLOADS[row.network]
    method = build(row.method, Setting(work, row.ranks, 0, work.learning_rate))
    if not isinstance(method, Method):
        return ""
    if type(method) is not Compressed:
        return type(method).__name__
    part = at(method.sparsify, 0) or method.quantize
    return type(part or method).__name__


def excess(row: Judged) -> float:
    """Return the loss relative to the tolerance."""
    if row.score is None:
        return math.inf
    return -row.difference / WORKLOADS[row.network].tolerance


def is_default(row: Judged) -> bool:
    """Return whether a result is at a learning rate of the roster."""
    return row.multiple in ROSTER[row.method].multiples


def _cell(row: Judged | None) -> str:
    if row is None:
        return ""
    text = with_unit(row) if row.score is None else f"{with_unit(row)}, {row.ratio:,.0f}x"
    return f"**{text}**" if row.within else text
