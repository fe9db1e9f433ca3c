"""The vectors that compression is measured on: Gaussians, and a real network's gradient.

The network has two wide hidden layers and learns to tell the images of Fashion-MNIST apart, if
they are here; else random ones, and then the vector is called after them. Its gradient is taken
after a few steps, so that it is no longer that of random weights.
"""

from __future__ import annotations

import gzip
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[Any]

PIXELS, CLASSES, BATCH = 784, 10, 64
STEPS, RATE = 5, 0.1


class Vector(NamedTuple):
    """A vector and what it is."""

    name: str
    values: NDArray[np.float32]


def gaussian(size: int, seed: int) -> Vector:
    """Independent values: the textbook's case, and no network's."""
    rng = np.random.default_rng(seed)
    return Vector("gaussian", rng.standard_normal(size, np.float32))


def gradient(size: int, seed: int) -> Vector:
    """The first so many values of a network's gradient, made wide enough to have them."""
    rng = np.random.default_rng(seed)
    found = _images()
    name = "gradient" if found else "gradient of random images"
    x, labels = found or _random_images(rng)
    weights = _weights(_width(size), rng)
    for step in range(STEPS + 1):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        slopes = _slopes(weights, x[rows], labels[rows])
        if step < STEPS:
            weights = [w - RATE * s for w, s in zip(weights, slopes, strict=True)]
    # The widest matrix first: it makes up most of such networks.
    flat = np.concatenate([slopes[i].reshape(-1) for i in (1, 0, 2)])
    return Vector(name, np.ascontiguousarray(flat[:size]))


def data_folder() -> Path:
    """Where the images would be: SPARCML_DATA, or shared/data beside this folder."""
    return Path(os.environ.get("SPARCML_DATA") or Path("..", "shared", "data"))


def _images() -> tuple[Floats, NDArray[np.intp]] | None:
    folder, rows = data_folder() / "fashion-mnist", (STEPS + 1) * BATCH
    try:
        with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(16 + rows * PIXELS), np.uint8, offset=16)
        with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(8 + rows), np.uint8, offset=8)
    except OSError:
        return None
    return np.float32(1 / 255) * pixels.reshape(-1, PIXELS), labels.astype(np.intp)


def _random_images(rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
    """One pattern a class, and noise."""
    labels = rng.integers(0, CLASSES, (STEPS + 1) * BATCH)
    patterns = rng.random((CLASSES, PIXELS), np.float32)
    noise = rng.random((labels.size, PIXELS), np.float32)
    return (patterns[labels] * noise).astype(np.float32), labels


def _width(size: int) -> int:
    """Of the hidden layers: w^2 + 784 w + 10 w must reach the size."""
    half = (PIXELS + CLASSES) / 2
    return max(1, math.ceil(math.sqrt(half * half + size) - half))


def _weights(width: int, rng: np.random.Generator) -> list[Floats]:
    sides = (PIXELS, width, width, CLASSES)
    return [
        rng.standard_normal((n, m), np.float32) * np.float32(math.sqrt(2 / n))
        for n, m in pairwise(sides)
    ]


def _slopes(weights: list[Floats], x: Floats, labels: NDArray[np.intp]) -> list[Floats]:
    """Of the mean cross entropy, by each layer's weights."""
    layers = [x]
    for w in weights[:-1]:
        layers.append(np.maximum(layers[-1] @ w, 0))
    scores = layers[-1] @ weights[-1]
    pull = np.exp(scores - scores.max(axis=1, keepdims=True))
    pull /= pull.sum(axis=1, keepdims=True)
    pull[np.arange(len(labels)), labels] -= 1
    pull /= len(labels)
    slopes = []
    for w, layer in zip(reversed(weights), reversed(layers), strict=True):
        slopes.append(layer.T @ pull)
        pull = (pull @ w.T) * (layer > 0)
    return slopes[::-1]
