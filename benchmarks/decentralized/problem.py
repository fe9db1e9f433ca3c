"""Classification of small images by a model per node, all nodes at once.

Images of Fashion-MNIST are averaged over squares of 4 x 4 pixels, so that an image has 49 values.
The models of all nodes are the rows of a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from workloads import data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Labels = NDArray[np.intp]

SIDE, SQUARE, CLASSES = 28, 4, 10
PIXELS = (SIDE // SQUARE) ** 2


@cache
def images() -> tuple[Floats, Labels]:
    """Return the training images with decorrelated values of unit variance, and their labels.

    Decorrelated inputs make the loss of a linear model well-conditioned, so that some hundred
    steps reach its minimum, and what is left is the error of a method.
    """
    table = data.fashion_mnist()
    side = SIDE // SQUARE
    squares = table.rows.reshape(-1, side, SQUARE, side, SQUARE).mean((2, 4))
    rows = squares.reshape(-1, PIXELS).astype(np.float64)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    return (rows @ (vectors / np.sqrt(values))).astype(np.float32), table.labels


@dataclass(frozen=True)
class Network:
    """A softmax of linear layers, with ReLU between them.

    Attributes:
        widths: Number of inputs, of hidden units of each layer, and of classes.
        decay: Weight of ||x||^2 / 2 in the loss.
    """

    widths: tuple[int, ...] = (PIXELS, CLASSES)
    decay: float = 0.0

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shapes of the layers; the last row of each is the bias."""
        return [(a + 1, b) for a, b in zip(self.widths[:-1], self.widths[1:], strict=True)]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(a * b for a, b in self.shapes)

    def start(self, seed: int) -> Floats:
        """Return a random model: zeros if there is one layer only."""
        rng = np.random.default_rng(seed)
        parts = []
        for rows, columns in self.shapes:
            weights = rng.standard_normal((rows, columns)) * np.sqrt(2 / rows)
            weights[-1] = 0
            parts.append(weights.reshape(-1) * (len(self.shapes) > 1))
        return np.concatenate(parts).astype(np.float32)

    def layers(self, models: Floats) -> list[Floats]:
        """Return the layers of models as views, the models along the first axis."""
        found, start = [], 0
        for rows, columns in self.shapes:
            part = models[:, start : start + rows * columns]
            found.append(part.reshape(-1, rows, columns))
            start += rows * columns
        return found

    def gradients(self, models: Floats, rows: Floats, labels: Labels) -> Floats:
        """Return the gradient of each model on its own batch.

        Args:
            models: One row per node.
            rows: Images, of shape (nodes, batch, pixels).
            labels: Labels, of shape (nodes, batch).
        """
        layers, inputs = self.layers(models), [rows]
        for layer in layers[:-1]:
            inputs.append(np.maximum(_linear(inputs[-1], layer), 0))
        delta = _softmax(_linear(inputs[-1], layers[-1]))
        nodes, batch = labels.shape
        delta[np.arange(nodes)[:, None], np.arange(batch), labels] -= 1
        delta /= np.float32(batch)
        result = np.empty_like(models)
        for index in reversed(range(len(layers))):
            out = self.layers(result)[index]
            np.matmul(inputs[index].transpose(0, 2, 1), delta, out=out[:, :-1])
            out[:, -1] = delta.sum(1)
            if index:
                delta = delta @ layers[index][:, :-1].transpose(0, 2, 1)
                delta *= inputs[index] > 0
        if self.decay:
            result += np.float32(self.decay) * models
        return result

    def loss(self, model: Floats, rows: Floats, labels: Labels) -> float:
        """Return the mean loss of one model, computed in float64 at the end."""
        hidden = rows[None]
        layers = self.layers(model[None])
        for layer in layers[:-1]:
            hidden = np.maximum(_linear(hidden, layer), 0)
        scores = _linear(hidden, layers[-1])[0].astype(np.float64)
        scores -= scores.max(1, keepdims=True)
        entropy = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(labels)), labels]
        square = float(np.vdot(model, model))
        return float(entropy.mean()) + self.decay / 2 * square


def _linear(inputs: Floats, layer: Floats) -> Floats:
    return np.asarray(inputs @ layer[:, :-1] + layer[:, -1:])


def _softmax(scores: Floats) -> Floats:
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(scores / scores.sum(-1, keepdims=True))


@dataclass(frozen=True)
class Shards:
    """The rows of each node.

    Attributes:
        rows: Images, of shape (nodes, rows per node, pixels).
        labels: Labels, of shape (nodes, rows per node).
    """

    rows: Floats
    labels: Labels

    def batch(self, step: int, size: int, seed: int) -> tuple[Floats, Labels]:
        """Return random rows of each node in a step, the same in every run."""
        nodes, count = self.labels.shape
        rng = np.random.default_rng((seed, step))
        chosen = rng.integers(count, size=(nodes, size))
        node = np.arange(nodes)[:, None]
        return self.rows[node, chosen], self.labels[node, chosen]


def shards(nodes: int, per_node: int, *, sorted_by_label: bool = False) -> Shards:
    """Return different rows for each node: random ones, or sorted by label."""
    rows, labels = images()
    order = np.random.default_rng(0).permutation(len(labels))[: nodes * per_node]
    if sorted_by_label:
        order = order[np.argsort(labels[order], kind="stable")]
    order = order.reshape(nodes, per_node)
    return Shards(rows[order], labels[order])


def optimum(network: Network, rows: Floats, labels: Labels) -> tuple[Any, float]:
    """Return the minimum of the loss of one layer, by L-BFGS, and the loss there."""
    from scipy.optimize import minimize

    def both(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        model = x.astype(np.float32)
        slope = network.gradients(model[None], rows[None], labels[None])[0]
        return network.loss(model, rows, labels), slope.astype(np.float64)

    start = network.start(0).astype(np.float64)
    found = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000})
    return found.x.astype(np.float32), float(found.fun)
