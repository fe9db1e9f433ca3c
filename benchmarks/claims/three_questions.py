"""Claim 7: how much does it compress, does it converge, does it need tuning?

Every method is trained at the learning rate of the dense run, untuned. The table is at the top of
docs/methods.md; this file has the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from methods import ROSTER
from tables import markdown
from workloads import WORKLOADS, train

from . import gradient_error
from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = (1, 2, 3)
SCAN: dict[str, Any] = {"ranks": 4, "steps": 300}  # of all methods
ENTRIES = {entry.name: entry for entry in ROSTER}
CLOSE, WORSE = 1.02, 1.02  # times the dense loss: at most with, at least without feedback
SCANNED = "fashion-mnist"
TOP, TOP_BARE, QSGD = "TopK 1 %", "TopK 1 %, no feedback", "QSGD 4 bits"
JUDGED = ("Dense", TOP, TOP_BARE, QSGD)  # what must hold: on 8 ranks, with all seeds
SAME = 0.01  # of accuracy: what counts as no loss


def cases() -> list[tuple[Any, ...]]:
    """Return the runs with a criterion, then all methods, then codes."""
    judged = [
        ("judged", workload, name, 1.0, seed)
        for workload in WORKLOADS
        for name in JUDGED
        for seed in SEEDS
    ]
    scan = [("scan", SCANNED, name, 1.0, seed) for name in ENTRIES for seed in SEEDS]
    return [*judged, *scan, *(("error", name) for name in gradient_error.WAYS)]


def measure(what: str, *arguments: Any) -> list[Row]:
    """Return one run, or one code of a real gradient."""
    if what == "error":
        return [{"what": what} | gradient_error.measure(*arguments)]
    size: dict[str, Any] = SCAN if what == "scan" else {}
    return [{"what": what} | trained(*arguments, **size)]


def trained(workload: str, name: str, rate: float, seed: int, **size: int) -> Row:
    """Return one run."""
    entry = ENTRIES[name]
    run = train(WORKLOADS[workload], entry.method, seed, rate=rate * entry.rate, **size)
    return {
        "workload": workload,
        "method": name,
        "rate": rate,
        "seed": seed,
        "loss": run.loss if np.isfinite(run.loss) else None,
        "accuracy": run.accuracy,
        "sent": run.sent,
        "share": run.share,
        "curve": [[step, float(f"{loss:.4g}")] for step, loss in run.curve],
    }


def judged(rows: list[Row], workload: str, name: str) -> list[Row]:
    """Return the losses of one method, over seeds."""
    return _where(rows, what="judged", workload=workload, method=name)


def scanned(rows: list[Row], name: str) -> list[Row]:
    """Return the runs of one method, over seeds."""
    return _where(rows, what="scan", method=name)


def difference(rows: list[Row], name: str) -> tuple[float, float]:
    """Return the accuracy minus that of dense runs of the same seeds: mean, standard error."""
    ours, dense = (scanned(rows, n) for n in (name, "Dense"))
    apart = [a["accuracy"] - b["accuracy"] for a, b in zip(ours, dense, strict=True)]
    return float(np.mean(apart)), float(np.std(apart, ddof=1) / np.sqrt(len(apart)))


def _where(rows: list[Row], **wanted: Any) -> list[Row]:
    return [r for r in rows if all(r.get(key) == value for key, value in wanted.items())]


def mean(rows: list[Row], key: str) -> float:
    """Return the mean over seeds; a run that diverged has an infinite loss."""
    return float(np.mean([np.inf if row[key] is None else row[key] for row in rows]))


def of_dense(rows: list[Row], workload: str, name: str) -> float:
    """Return the loss relative to the dense one."""
    ours, dense = (mean(judged(rows, workload, n), "loss") for n in (name, "Dense"))
    return ours / dense


def musts(rows: list[Row]) -> list[tuple[str, str, float, str, bool]]:
    """Return the criteria on both workloads: name, workload, ours, limit, met."""
    found = []
    for workload in WORKLOADS:
        top, bare, code = (of_dense(rows, workload, n) for n in (TOP, TOP_BARE, QSGD))
        found += [
            (TOP, workload, top, f"<= {CLOSE}", top <= CLOSE),
            (TOP_BARE, workload, bare, f">= {WORSE}", bare >= WORSE),
            (QSGD, workload, code, f"<= {CLOSE}", code <= CLOSE),
        ]
    return found


def answer(rows: list[Row]) -> Answer:
    """Hit if top-k and 4 bits are as good as dense, untuned."""
    checks = musts(rows)
    hit = all(ok for *_, ok in checks)
    kept = [name for name in ENTRIES if keeps(rows, name)]
    dense = mean(scanned(rows, "Dense"), "accuracy")
    ours = (
        f"{len(kept)} of {len(ENTRIES)} methods keep the mean accuracy of the dense "
        f"runs ({dense:.1%}) within {SAME:.0%} at their learning rate; TopK 1 % ends at "
        f"{_span(checks, TOP)} times the dense loss ({_span(checks, TOP_BARE)} without "
        f"feedback), QSGD with 4 bits at {_span(checks, QSGD)}"
    )
    why = (
        "all three questions are answered for every method in [methods.md](methods.md)"
        if hit
        else "; ".join(
            f"{name} on {where} has {got:.3f} times the dense loss, limit {due}"
            for name, where, got, due, ok in checks
            if not ok
        )
    )
    return Answer(hit, ours, why, _details(rows))


def _span(checks: list[tuple[str, str, float, str, bool]], name: str) -> str:
    return " and ".join(f"{got:.3f}" for n, _, got, _, _ in checks if n == name)


def keeps(rows: list[Row], name: str) -> bool:
    """Return whether the mean accuracy is that of the dense runs."""
    return difference(rows, name)[0] >= -SAME


def losses(rows: list[Row]) -> str:
    """Return the criteria as a table."""
    head = ["method", "workload", "loss / dense loss", "due", "met"]
    lines = [
        [name, where, f"{got:.4f}", due, "yes" if ok else "no"]
        for name, where, got, due, ok in musts(rows)
    ]
    return markdown(head, lines)


def _details(rows: list[Row]) -> str:
    about = "; ".join(
        f"*{name}*: {w.about}, {w.steps} steps, {w.batch} rows per rank"
        for name, w in WORKLOADS.items()
    )
    return (
        f"8 ranks, {len(SEEDS)} seeds, the learning rate of the dense run. {about}. Losses are "
        f"over all rows after the last step, means over seeds.\n\n{losses(rows)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot loss against steps, one panel per workload."""
    from .drawing import BLACK, BLUE, GREEN, ORANGE, axes

    canvas, sheets = axes(len(WORKLOADS), (8.0, 3.4), together=False)
    styles = {
        "Dense": (BLACK, "-"),
        TOP: (BLUE, "--"),
        QSGD: (GREEN, ":"),
        TOP_BARE: (ORANGE, "-"),
    }
    for ax, workload in zip(sheets, WORKLOADS, strict=True):
        for name, (colour, style) in styles.items():
            curves = [row["curve"] for row in judged(rows, workload, name)]
            steps = [step for step, _ in curves[0]]
            middle = np.mean([[loss for _, loss in curve] for curve in curves], axis=0)
            ax.plot(steps, middle, style, color=colour, label=name)
        ax.set(xlabel="steps", title=workload, yscale="log")
    sheets[0].set_ylabel("loss over all rows")
    canvas.legend(
        *sheets[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
    )
    return canvas


CLAIM = Claim(
    number=7,
    title="Three questions about every method",
    text=(
        "three questions decide on a method: how much does it compress, does it converge, "
        "and does it need tuning?"
    ),
    source="talks on communication in training",
    how="measured, on threads",
    seed=SEEDS[0],
    cases=cases(),
    measure=measure,
    answer=answer,
    figures={"three-questions": figure},
)
