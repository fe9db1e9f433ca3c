"""Logistic regression on hashed mails, as a torch model: spam or not.

The weights are a matrix of one column, because methods do not compress vectors.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from loop import Task
from torch import nn
from torch.nn import functional
from workloads import data

if TYPE_CHECKING:
    from torch import Tensor


class Mails(NamedTuple):
    """Rows in CSR format, and labels (1 for spam)."""

    offsets: Tensor
    columns: Tensor
    values: Tensor
    labels: Tensor


class Classifier(nn.Module):  # type: ignore[misc]
    """One weight per column, and an intercept; both start at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.EmbeddingBag(data.COLUMNS, 1, mode="sum")
        self.intercept = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.weights.weight)

    def forward(self, columns: Tensor, starts: Tensor, values: Tensor) -> Tensor:
        """Return the score of each row; it is spam if positive."""
        return self.weights(columns, starts, values)[:, 0] + self.intercept


def scores(mails: Mails, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the scores of some rows."""
    first, counts = mails.offsets[rows], mails.offsets[rows + 1] - mails.offsets[rows]
    starts = counts.cumsum(0) - counts
    entries = torch.arange(int(counts.sum())) + (first - starts).repeat_interleave(counts)
    return model(mails.columns[entries], starts, mails.values[entries])


def loss(mails: Mails, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean logistic loss."""
    return functional.binary_cross_entropy_with_logits(
        scores(mails, model, rows), mails.labels[rows]
    )


def evaluate(mails: Mails, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the number of correct predictions, and of all."""
    correct = (scores(mails, model, rows) > 0) == (mails.labels[rows] > 0)
    return float(correct.sum()), float(len(rows))


def read() -> tuple[Mails, Mails]:
    """Return training and test rows; hashing takes seconds, so its result is cached."""
    source = data.folder() / "spam-assassin.jsonl.gz"
    stamp = source.stat()
    name = f"sparcml-spam-{data.COLUMNS}-{stamp.st_size}-{stamp.st_mtime_ns}.npz"
    path = Path(tempfile.gettempdir()) / name
    if not path.exists():
        _write(path)
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    return (
        Mails(*(arrays[f"train_{name}"] for name in Mails._fields)),
        Mails(*(arrays[f"test_{name}"] for name in Mails._fields)),
    )


def _write(path: Path) -> None:
    table = data.spam()
    arrays: dict[str, Any] = {}
    for part, rows, labels in (
        ("train", table.rows, table.labels),
        ("test", table.test_rows, table.test_labels),
    ):
        columns = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
        mails = (*columns, (labels > 0).astype(np.float32))
        arrays |= {f"{part}_{n}": a for n, a in zip(Mails._fields, mails, strict=True)}
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
        np.savez(file, **arrays)
    Path(file.name).replace(path)  # at once, since two jobs may write it


def task() -> Task:
    """Return the task with the real mails."""
    train, test = read()
    return Task(
        model=Classifier,
        rows=len(train.labels),
        tests=len(test.labels),
        loss=partial(loss, train),
        evaluate=partial(evaluate, test),
        score=lambda fraction: 100 * fraction,
        metric="accuracy (%)",
        learning_rate=16.0,
        batch_size=16,
        epochs=10,
    )
