"""A recommender in small: who clicks on what, from tables of which a step uses few rows.

    torchrun --nproc-per-node 2 examples/torch/clicks.py --method dense
    torchrun --nproc-per-node 2 examples/torch/clicks.py --method topk

The tables' gradients are sparse (`nn.Embedding(sparse=True)`): sparcml sends the rows that
were used, without loss whatever the method, and `dense`, which is plain DDP, does so by
torch's own sparse sums (the bytes printed for it are those of dense tables, which it does not
send). Clicks are made up: people and things have hidden tastes.
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

PEOPLE, THINGS, WIDTH, HIDDEN = 5_000, 1_000, 16, 64


class Clicks(NamedTuple):
    """Who saw what, and whether they clicked on it."""

    people: Tensor
    things: Tensor
    clicked: Tensor


class Recommender(nn.Module):  # type: ignore[misc]
    """The product of a person's and a thing's row, and what a small network adds."""

    def __init__(self) -> None:
        super().__init__()
        self.people = nn.Embedding(PEOPLE, WIDTH, sparse=True)
        self.things = nn.Embedding(THINGS, WIDTH, sparse=True)
        self.more = nn.Sequential(
            nn.Linear(2 * WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
        )
        for table in (self.people, self.things):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, people: Tensor, things: Tensor) -> Tensor:
        """The logarithm of the odds of a click."""
        a, b = self.people(people), self.things(things)
        return (a * b).sum(1) + self.more(torch.cat([a, b], 1))[:, 0]


def made_up(count: int, seed: int) -> Clicks:
    """Popular things are seen often; tastes are the same for all seeds."""
    tastes = torch.Generator().manual_seed(0)
    likes = torch.randn(PEOPLE, 4, generator=tastes)
    offers = torch.randn(THINGS, 4, generator=tastes)
    draw = torch.Generator().manual_seed(seed)
    people = (PEOPLE * torch.rand(count, generator=draw) ** 2).long()
    things = (THINGS * torch.rand(count, generator=draw) ** 3).long()
    odds = 2 * (likes[people] * offers[things]).sum(1)
    clicked = torch.rand(count, generator=draw) < torch.sigmoid(odds)
    return Clicks(people, things, clicked.float())


def loss(data: Clicks, model: nn.Module, rows: Tensor) -> Tensor:
    """The cross entropy of a click."""
    found = model(data.people[rows], data.things[rows])
    return functional.binary_cross_entropy_with_logits(found, data.clicked[rows])


def judge(data: Clicks, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Clicks that are told right, and all."""
    found = model(data.people[rows], data.things[rows]) > 0
    return float((found == (data.clicked[rows] > 0)).sum()), float(len(rows))


def task(folder: Path | None = None) -> Task:
    """Always of made-up clicks."""
    del folder
    data, test = made_up(200_000, seed=1), made_up(5000, seed=2)
    return Task(
        model=Recommender,
        rows=len(data.people),
        tests=len(test.people),
        loss=partial(loss, data),
        judge=partial(judge, test),
        score=lambda part: 100 * part,
        metric="accuracy (%)",
        rate=0.1,
        batch=256,
        epochs=2,
        sparse=True,
    )


if __name__ == "__main__":
    main(task, __doc__)
