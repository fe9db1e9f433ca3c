"""Claim 19: a residual network keeps its accuracy with 8 or 16 of every 512 values."""

from __future__ import annotations

from training import pages
from training.judge import scores

from .base import Answer, Claim, Row
from .trained import part_of, result, rows_of

METHODS = ("topk8of512", "topk16of512")
NETWORK = "fashion-mnist"


def measure() -> list[Row]:
    """Return the saved rows of `benchmarks/run_training.py`."""
    return rows_of("accuracy", METHODS, (NETWORK,))


def answer(rows: list[Row]) -> Answer:
    """Hit if both scores are within tolerance."""
    found = scores(part_of(rows, "accuracy"), NETWORK)
    mine = {name: found[name] for name in METHODS if name in found}
    hit = len(mine) == len(METHODS) and all(s.within for s in mine.values())
    ours = "; ".join(result(n, NETWORK, s, relative=False) for n, s in mine.items())
    why = (
        "values that are not sent are delayed, not lost, and no hyperparameter was changed"
        if hit
        else "the accuracy differs from the dense one by more than the tolerance"
    )
    table = pages.accuracy(part_of(rows, "accuracy"), NETWORK)
    return Answer(hit, ours, why, f"*Measured*:\n\n{table}")


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
