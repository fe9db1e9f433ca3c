"""A residual network with the size of ResNet20 on 112 nodes: centralized and D-PSGD.

ResNet20 has 269,434 parameters with one input channel. Images of Fashion-MNIST are averaged over
squares of 2 x 2 pixels. Group normalization replaces batch normalization, whose statistics of a few
rows per node would differ between a node and a centralized run. One torch model computes the
gradients of all nodes, one after the other; the models are the rows of a matrix.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from workloads import data

from sparcml import decentralized as dec
from sparcml import kernels

from .problem import SIDE, Shards

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Labels = NDArray[np.intp]

Row = dict[str, Any]

NODES, PER_NODE, BATCH, SEED = 112, 500, 8, 1
STEPS, SQUARE, GROUPS = 240, 2, 8
RATES = (0.3,)
METHODS = ("centralized", "D-PSGD")
LOCAL, MARKS, CHECKED, CHUNK = 4, 12, 4096, 128


class Network:
    """ResNet20 with its parameters, and their gradients, in one vector each."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(SEED)
        self._torch = torch
        self._model = _resnet(torch.nn)
        parameters = list(self._model.parameters())
        self.size = sum(p.numel() for p in parameters)
        self._x, self._g = np.empty(self.size, np.float32), np.zeros(self.size, np.float32)
        at = 0
        for p in parameters:
            part = slice(at, at + p.numel())
            self._x[part] = p.detach().numpy().reshape(-1)
            p.data = torch.from_numpy(self._x[part]).view(p.shape)
            p.grad = torch.from_numpy(self._g[part]).view(p.shape)
            at += p.numel()
        self.start = self._x.copy()

    def gradient(self, x: Floats, rows: Floats, labels: Labels) -> Floats:
        """Return the gradient of the mean loss; it is overwritten by the next call."""
        self._x[:] = x
        self._g[:] = 0
        for at in range(0, len(labels), CHUNK):
            part = slice(at, at + CHUNK)
            (self._loss(rows[part], labels[part]) / len(labels)).backward()
        return self._g

    def loss(self, x: Floats, rows: Floats, labels: Labels) -> float:
        """Return the mean loss."""
        self._x[:] = x
        with self._torch.no_grad():
            parts = [slice(at, at + CHUNK) for at in range(0, len(labels), CHUNK)]
            total = sum(float(self._loss(rows[p], labels[p])) for p in parts)
        return total / len(labels)

    def _loss(self, rows: Floats, labels: Labels) -> torch.Tensor:
        torch = self._torch
        scores = self._model(torch.from_numpy(rows)[:, None])
        return torch.nn.functional.cross_entropy(
            scores, torch.from_numpy(labels), reduction="sum"
        )


def _resnet(nn: Any) -> Any:
    """Return ResNet20: three blocks each with 16, 32 and 64 channels."""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.stride, self.more = (2 if outputs > inputs else 1), outputs - inputs
            self.body = nn.Sequential(
                *_layer(nn, inputs, outputs, self.stride),
                nn.ReLU(),
                *_layer(nn, outputs, outputs, 1),
            )
            nn.init.zeros_(self.body[-1].weight)  # a block starts as the identity

        def forward(self, x: Any) -> Any:
            skip = x[:, :, :: self.stride, :: self.stride]
            skip = nn.functional.pad(skip, (0, 0, 0, 0, 0, self.more))
            return nn.functional.relu(skip + self.body(x))

    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b) for a, b in itertools.pairwise(widths)]
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*_layer(nn, 1, 16, 1), nn.ReLU(), *blocks, *ends)


def _layer(nn: Any, inputs: int, outputs: int, stride: int) -> list[Any]:
    return [
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
        nn.GroupNorm(GROUPS, outputs),
    ]


def shards() -> Shards:
    """Return different random images for each node."""
    table = data.fashion_mnist()
    side = SIDE // SQUARE
    images = table.rows.reshape(-1, side, SQUARE, side, SQUARE).mean((2, 4))
    images /= images.std()
    order = np.random.default_rng(0).permutation(len(images))[: NODES * PER_NODE]
    order = order.reshape(NODES, PER_NODE)
    return Shards(images[order], table.labels[order])


def measure(method: str, lr: float, steps: int = STEPS) -> list[Row]:
    """Return one run: losses of the mean model, and the mean loss of some nodes' models."""
    network, parts = Network(), shards()
    checked = slice(None, None, parts.labels.size // CHECKED)
    rows = parts.rows.reshape(-1, *parts.rows.shape[2:])[checked]
    labels = parts.labels.reshape(-1)[checked]
    count = 1 if method == "centralized" else NODES
    X = np.tile(network.start, (count, 1))
    topology = dec.ring(count)
    marks = sorted({round(t) for t in np.geomspace(min(20, steps), steps, MARKS)})
    mean, local, distance = [], [], []
    for step in range(1, steps + 1):
        batches, targets = parts.batch(step, BATCH, SEED)
        if count == 1:
            batches, targets = (
                batches.reshape(1, -1, *batches.shape[2:]),
                targets.reshape(1, -1),
            )
        rate, new = lr * (1 - (step - 1) / steps), np.empty_like(X)
        for node in range(count):
            own, weights = topology.weights(node, 0)
            terms = dict(sorted({node: own, **weights}.items()))
            mixed = kernels.weighted_sum(list(terms.values()), [X[j] for j in terms])
            g = network.gradient(X[node], batches[node], targets[node])
            new[node] = kernels.weighted_sum([1.0], [mixed], rate=rate, g=g)
        X = new
        if step in marks:
            middle = X.mean(0, dtype=np.float64).astype(np.float32)
            some = X[:: max(1, count // LOCAL)]
            mean.append(network.loss(middle, rows, labels))
            local.append(float(np.mean([network.loss(x, rows, labels) for x in some])))
            squares = [float(np.square(x - middle, dtype=np.float64).sum()) for x in X]
            distance.append(float(np.sqrt(np.mean(squares))))
    row = {"part": "resnet", "method": method, "nodes": NODES, "steps": steps, "lr": lr}
    row |= {"batch": BATCH, "parameters": network.size, "marks": marks}
    return [row | {"mean": mean, "local": local, "distance": distance}]
