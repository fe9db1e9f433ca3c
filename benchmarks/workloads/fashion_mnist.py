"""A network of two layers on Fashion-MNIST: 784 pixels, 64 hidden units, 10 classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import data
from .train import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .train import Arrays

PIXELS, HIDDEN, CLASSES = 784, 64, 10


def start(seed: int) -> Arrays:
    """Return random weights that preserve the scale of activations, and zero biases."""
    rng = np.random.default_rng(seed)
    first = rng.normal(0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN))
    second = rng.normal(0, np.sqrt(1 / HIDDEN), (HIDDEN, CLASSES))
    return {
        "first": first.astype(np.float32),
        "first offset": np.zeros(HIDDEN, np.float32),
        "second": second.astype(np.float32),
        "second offset": np.zeros(CLASSES, np.float32),
    }


def forward(w: Arrays, x: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
    """Return the hidden activations and the log probabilities of the classes."""
    hidden = np.maximum(x @ w["first"] + w["first offset"], 0)
    scores = hidden @ w["second"] + w["second offset"]
    scores -= scores.max(axis=1, keepdims=True)
    return hidden, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def gradient(w: Arrays, rows: NDArray[np.intp]) -> Arrays:
    """Return the gradient of the mean cross entropy over rows."""
    table = data.fashion_mnist()
    x, labels = table.rows[rows], table.labels[rows]
    hidden, logs = forward(w, x)
    pull = np.exp(logs)
    pull[np.arange(len(rows)), labels] -= 1
    pull /= len(rows)
    back = (pull @ w["second"].T) * (hidden > 0)
    return {
        "first": x.T @ back,
        "first offset": back.sum(axis=0),
        "second": hidden.T @ pull,
        "second offset": pull.sum(axis=0),
    }


def judge(w: Arrays) -> tuple[float, float]:
    """Return the cross entropy over all rows, and the accuracy on the test set."""
    table = data.fashion_mnist()
    _, logs = forward(w, table.rows)
    loss = -logs[np.arange(len(logs)), table.labels].mean(dtype=np.float64)
    _, logs = forward(w, table.test_rows)
    return float(loss), float((logs.argmax(axis=1) == table.test_labels).mean())


WORKLOAD = Workload(
    name="fashion-mnist",
    about="a network of 784, 64 and 10 units on the 60,000 images of Fashion-MNIST",
    rate=0.1,
    steps=450,
    batch=32,
    rows=lambda: len(data.fashion_mnist().labels),
    start=start,
    gradient=gradient,
    judge=judge,
)
