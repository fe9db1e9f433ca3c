"""A small network on Fashion-MNIST: 14 x 14 pixels, two hidden layers, 10 classes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from workloads.data import fashion_mnist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

PIXELS, HIDDEN, CLASSES = 196, (128, 64), 10
SHARE, TEST_SHARE = 3, 2  # every third of 60,000 images, every second of 10,000
TEST_BATCH = 2500


class Images(NamedTuple):
    """Standardized pixels, and labels."""

    pixels: Tensor
    labels: Tensor


@cache
def images() -> tuple[Images, Images]:
    """Return the training and the test images, means over squares of 2 x 2 pixels."""
    table = fashion_mnist()
    train, test = _halved(table.rows[::SHARE]), _halved(table.test_rows[::TEST_SHARE])
    scale = train.std()
    return (
        Images(train / scale, torch.from_numpy(table.labels[::SHARE].copy())),
        Images(test / scale, torch.from_numpy(table.test_labels[::TEST_SHARE].copy())),
    )


def _halved(rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Tensor:
    squares = rows.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4), dtype=np.float32)
    return torch.from_numpy(squares.reshape(-1, PIXELS))


def network(seed: int) -> nn.Module:
    """Return the network with random weights: 34,122 parameters."""
    torch.manual_seed(seed)
    first, second = HIDDEN
    return nn.Sequential(
        nn.Linear(PIXELS, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, CLASSES),
    )


def loss(model: nn.Module, data: Images, rows: Tensor | slice) -> Tensor:
    """Return the mean cross entropy of some rows."""
    return functional.cross_entropy(model(data.pixels[rows]), data.labels[rows])


def evaluate(model: nn.Module, data: Images) -> tuple[float, float]:
    """Return the mean cross entropy and the accuracy in percent."""
    total, correct, count = 0.0, 0, len(data.labels)
    with torch.no_grad():
        for first in range(0, count, TEST_BATCH):
            labels = data.labels[first : first + TEST_BATCH]
            scores = model(data.pixels[first : first + TEST_BATCH])
            total += float(functional.cross_entropy(scores, labels, reduction="sum"))
            correct += int((scores.argmax(1) == labels).sum())
    return total / count, 100 * correct / count


def batches(rows: int, batch: int, seed: int) -> Iterator[Tensor]:
    """Yield batches without end: permutations of the rows, one after the other."""
    draw = torch.Generator().manual_seed(seed)
    waiting = torch.empty(0, dtype=torch.long)
    while True:
        while len(waiting) < batch:
            waiting = torch.cat([waiting, torch.randperm(rows, generator=draw)])
        yield waiting[:batch]
        waiting = waiting[batch:]
