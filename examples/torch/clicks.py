"""A small recommender: embedding tables of which each step uses few rows.

    torchrun --nproc-per-node 2 examples/torch/clicks.py --method dense
    torchrun --nproc-per-node 2 examples/torch/clicks.py --method topk

The gradients of the tables are sparse (`nn.Embedding(sparse=True)`). sparcml sends the rows in
use without loss, with every method; `dense`, which is plain DDP, uses torch's own sparse
allreduce (the bytes printed for it are those of dense tables, which it does not send). The data
are synthetic: users and items have hidden preferences.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from loop import Task, main
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

USERS, ITEMS, WIDTH, HIDDEN = 5_000, 1_000, 16, 64


class Clicks(NamedTuple):
    """Users, the items they saw, and whether they clicked."""

    users: Tensor
    items: Tensor
    clicked: Tensor


class Recommender(nn.Module):  # type: ignore[misc]
    """Product of the rows of user and item, plus a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, WIDTH, sparse=True)
        self.items = nn.Embedding(ITEMS, WIDTH, sparse=True)
        self.more = nn.Sequential(
            nn.Linear(2 * WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
        )
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the log odds of a click."""
        a, b = self.users(users), self.items(items)
        return (a * b).sum(1) + self.more(torch.cat([a, b], 1))[:, 0]


def synthetic(count: int, seed: int) -> Clicks:
    """Return random clicks; preferences are the same for all seeds."""
    preferences = torch.Generator().manual_seed(0)
    likes = torch.randn(USERS, 4, generator=preferences)
    offers = torch.randn(ITEMS, 4, generator=preferences)
    draw = torch.Generator().manual_seed(seed)
    users = (USERS * torch.rand(count, generator=draw) ** 2).long()
    items = (ITEMS * torch.rand(count, generator=draw) ** 3).long()
    odds = 2 * (likes[users] * offers[items]).sum(1)
    clicked = torch.rand(count, generator=draw) < torch.sigmoid(odds)
    return Clicks(users, items, clicked.float())


def loss(data: Clicks, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean cross entropy per click."""
    logits = model(data.users[rows], data.items[rows])
    return functional.binary_cross_entropy_with_logits(logits, data.clicked[rows])


def evaluate(data: Clicks, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the number of correct predictions, and of all."""
    predicted = model(data.users[rows], data.items[rows]) > 0
    return float((predicted == (data.clicked[rows] > 0)).sum()), float(len(rows))


def task(folder: Path | None = None) -> Task:
    """Return the task with synthetic clicks."""
    del folder
    data, test = synthetic(200_000, seed=1), synthetic(5000, seed=2)
    return Task(
        model=Recommender,
        rows=len(data.users),
        tests=len(test.users),
        loss=partial(loss, data),
        evaluate=partial(evaluate, test),
        score=lambda fraction: 100 * fraction,
        metric="accuracy (%)",
        learning_rate=0.1,
        batch_size=256,
        epochs=2,
        sparse=True,
    )


if __name__ == "__main__":
    main(task, __doc__)
