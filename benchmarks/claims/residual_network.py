"""Claim 19: a residual network keeps its accuracy with 8 or 16 of every 512 values."""

from __future__ import annotations

from .base import Answer, Claim, Row
from .trained import judged, listed, runs_of, tables, unfinished

METHODS = ("topk8of512-layers", "topk16of512-layers")
NETWORK = "fashion-mnist"
RANKS = 2  # world size that both methods need; others count where they are measured


def measure() -> list[Row]:
    """Return the saved rows of run_accuracy.py."""
    return runs_of(METHODS, (NETWORK,))


def answer(rows: list[Row]) -> Answer:
    """Hit if all differences are within tolerance."""
    found = [row for row in judged(rows) if row.method in METHODS and row.multiple == 1]
    done = {row.method for row in found if row.ranks == RANKS}
    missing = [name for name in METHODS if name not in done]
    off = [f"{row.method} on {row.ranks} ranks" for row in found if not row.within]
    if missing:
        why = unfinished(missing)
    elif off:
        why = f"the difference to dense exceeds the tolerance: {', '.join(off)}"
    else:
        why = (
            "values that are not sent are delayed, not lost; the learning rate is unchanged"
        )
    ours = listed(found)
    details = (
        f"*Measured*. The density falls over the run: 25 % at first, and 8 or 16 of 512 values "
        f"in the last quarter (`Schedule.falling`). Layers share these bytes by their errors "
        f"(`Adaptive`), and values have 4 bits.\n\n{tables(rows)}"
    )
    return Answer(not (missing or off), ours, why, details, not missing)


CLAIM = Claim(
    number=19,
    title="A residual network",
    text="ResNet-110 on CIFAR-10 keeps its accuracy with 8 or 16 of every 512 values",
    source="the paper on SparCML",
    how="measured, a residual network on Fashion-MNIST",
    seed=0,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
