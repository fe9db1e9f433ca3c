"""Logistic regression on hashed mails: spam or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import data
from .train import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .train import Arrays


def start(seed: int) -> Arrays:
    """Return zeros for any seed: the problem is convex.

    The parameter is a matrix of one column, because methods do not compress vectors.
    """
    del seed
    return {"weights": np.zeros((data.COLUMNS, 1), np.float32)}


def gradient(parameters: Arrays, rows: NDArray[np.intp]) -> Arrays:
    """Return the gradient of the mean of log(1 + exp(-y a.x)) over rows a with labels y."""
    table = data.spam()
    a, y = table.rows[rows], table.labels[rows]
    margin = y * (a @ parameters["weights"])[:, 0]
    pull = (-y / (1 + np.exp(margin)) / len(rows)).astype(np.float32)
    return {"weights": np.asarray(a.T @ pull, np.float32)[:, None]}


def judge(parameters: Arrays) -> tuple[float, float]:
    """Return the mean loss over all rows, and the accuracy on the test fifth."""
    table, x = data.spam(), parameters["weights"][:, 0]
    losses = np.logaddexp(0, -table.labels * (table.rows @ x), dtype=np.float64)
    right = table.test_labels * (table.test_rows @ x) > 0
    return float(losses.mean()), float(right.mean())


WORKLOAD = Workload(
    name="spam",
    about=(
        "logistic regression on 4,837 mails (SpamAssassin), hashed to 262,144 columns, about "
        "1,600 entries per row"
    ),
    rate=16.0,
    steps=300,
    batch=16,
    rows=lambda: len(data.spam().labels),
    start=start,
    gradient=gradient,
    judge=judge,
)
