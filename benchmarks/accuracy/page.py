"""Section of docs/training.md on accuracy: tables, and a figure of scores and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tables import markdown

from .judge import judge
from .roster import DENSE, ROSTER
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .jobs import Row
    from .judge import Judged
    from .workloads import Workload

MIN_SEEDS = 3  # results of fewer are not shown

INTRODUCTION = """\
## Accuracy

All ranks of a run are in one process: the gradient of each rank is computed in turn, and thread
ranks aggregate them with the methods that DDP uses, with equal results (a test compares both). The
batch of all ranks together is the same for any number of ranks. Learning rates were chosen for the
dense runs, by the scores shown here; other settings are written above each table.

- *Difference*: mean over the seeds of the difference to the dense run with the same weights and
  batches, and its standard error. Positive is better. Relative for perplexity and loss, points
  otherwise.
- *Worst from step 300*: the same for the validation curve, relative, at its worst point.
- *Compression ratio*: bytes sent per rank, dense ring allreduce / ours, over the full run,
  including warm-ups and uncompressed tensors.
- *x2, x6*: at that multiple of the dense learning rate.

Results of fewer than three seeds are not shown. `python benchmarks/run_accuracy.py` runs what is
missing, and can be interrupted; `--list` shows it.
"""


def section(rows: list[Row]) -> str:
    """Return the section; without complete results only its introduction."""
    found = shown(rows)
    parts = [INTRODUCTION]
    for network, work in WORKLOADS.items():
        here = [row for row in found if row.network == network]
        if len(here) > 1:  # more than dense
            title = f"{work.title[0].upper()}{work.title[1:]}"
            parts += [f"### {title}\n", f"{_settings(work)}\n", _table(work, here)]
    if compared(rows):
        parts += ["![Differences and bytes](figures/accuracy.svg)\n"]
    return "\n".join(parts)


def shown(rows: list[Row]) -> list[Judged]:
    """Return the results that have enough seeds."""
    return [row for row in judge(rows) if row.seeds >= MIN_SEEDS]


def compared(rows: list[Row]) -> list[Judged]:
    """Return the results of compressed runs at the dense learning rate."""
    return [row for row in shown(rows) if row.ranks > 1 and row.multiple == 1]


def _settings(work: Workload) -> str:
    unit = " %" if work.relative else " points"
    limit = 100 * work.tolerance if work.relative else work.tolerance
    return f"{work.settings}; learning rate {work.learning_rate:g}. Tolerance: {limit:g}{unit}."


def _table(work: Workload, rows: list[Judged]) -> str:
    head = ["method", "ranks", "score", "difference", "met", "worst from step 300"]
    head += ["compression ratio", "seeds"]
    return markdown(head, [_cells(work, row) for row in rows])


def _cells(work: Workload, row: Judged) -> list[str]:
    title = ROSTER[row.method].title
    if row.multiple != 1:
        title += f", x{row.multiple:g}"
    if row.method == DENSE and row.multiple == 1:
        return [title, "any", f"{row.score:.3f}", "", "", "", "1.0x", str(row.seeds)]
    scale, unit = (100, " %") if work.relative else (1, "")
    score = "diverged" if row.score is None else f"{row.score:.3f}"
    difference = f"{scale * row.difference:+.2f}{unit} ± {scale * row.error:.2f}"
    ranks = "any" if row.ranks == 1 else str(row.ranks)
    return [
        title,
        ranks,
        score,
        "" if row.score is None else difference,
        "yes" if row.within else "no",
        "" if row.score is None else f"{row.worst:+.1%}",
        f"{row.ratio:,.1f}x",
        str(row.seeds),
    ]


def figure(rows: list[Row]) -> Figure:
    """Plot the difference to dense against the compression ratio."""
    from claims.drawing import COLOURS, axes

    found = compared(rows)
    names = [n for n in WORKLOADS if any(r.network == n for r in found)]
    canvas, panels = axes(len(names), (3.2 * len(names) + 2.4, 3.4), together=False)
    methods = list(dict.fromkeys(r.method for r in found))
    handles: dict[str, Any] = {}
    for ax, network in zip(panels, names, strict=True):
        work = WORKLOADS[network]
        scale = 100 if work.relative else 1
        for row in found:
            if row.network != network or row.score is None:
                continue
            place = methods.index(row.method)
            handles[ROSTER[row.method].title] = ax.errorbar(
                row.ratio,
                scale * row.difference,
                scale * row.error,
                fmt="os^vDP*X"[place % 8],
                color=COLOURS[place % len(COLOURS)],
                mfc="white" if row.ranks > 2 else COLOURS[place % len(COLOURS)],
                ms=6,
                capsize=2,
            )
        ax.axhline(0, color="0.6", lw=1, ls=":")
        ax.axhline(-scale * work.tolerance, color="0.75", lw=1, ls="--")
        unit = "%" if work.relative else "points"
        ax.set(xscale="log", xlabel="compression ratio", ylabel=f"difference ({unit})")
        ax.set_title(work.title, fontsize=9)
    canvas.legend(
        handles.values(), handles.keys(), loc="outside right center", frameon=False
    )
    canvas.suptitle(
        "filled: 2 ranks, white: 8; dashed: tolerance; bars: standard error of 3 seeds",
        fontsize=9,
    )
    return canvas
