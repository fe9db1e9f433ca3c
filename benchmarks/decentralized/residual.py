"""A residual network with the size of ResNet20 on 112 nodes: centralized and D-PSGD.

ResNet20 has 269,434 parameters with one input channel. Images of Fashion-MNIST are averaged over
squares of 4 x 4 pixels. Group normalization replaces batch normalization, whose statistics of a few
rows per node would differ between a node and a centralized run. The models are the rows of a
matrix; a convolution with one group per node computes some of them at once, three times as fast as
one after the other.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from workloads import data

from sparcml import decentralized as dec
from sparcml import kernels

from .problem import SIDE, SQUARE, Shards

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Labels = NDArray[np.intp]

Row = dict[str, Any]

NODES, PER_NODE, BATCH, SEED = 112, 500, 8, 1
STEPS = 800
RATES = (0.025, 0.1)
METHODS = ("centralized", "D-PSGD")
LOCAL, MARKS, CHECKED = 4, 14, 4096
TOGETHER, CHUNK = (
    8,
    128,
)  # nodes, and images of a node, of one pass: their values fit in caches

BLOCKS = list(itertools.pairwise([16, 16, 16, 16, 32, 32, 32, 64, 64, 64]))
GROUPS, FEATURES, CLASSES = 8, 64, 10


def _shapes() -> list[tuple[int, ...]]:
    layers = [(1, 16), *(layer for a, b in BLOCKS for layer in [(a, b), (b, b)])]
    shapes: list[tuple[int, ...]] = []
    for inputs, outputs in layers:
        shapes += [(outputs, inputs, 3, 3), (outputs,), (outputs,)]
    return [*shapes, (CLASSES, FEATURES), (CLASSES,)]


SHAPES = _shapes()
SIZES = [math.prod(shape) for shape in SHAPES]


def start() -> Floats:
    """Return the first model, with torch's default ranges; each block is the identity."""
    rng = np.random.default_rng(SEED)
    parts = []
    for shape, size in zip(SHAPES, SIZES, strict=True):
        if len(shape) > 1 or shape == (CLASSES,):
            bound = 1 / math.sqrt(math.prod(shape[1:]) if len(shape) > 1 else FEATURES)
            parts.append(rng.uniform(-bound, bound, size))
        else:
            scale = len(parts) % 3 == 1
            last = len(parts) // 3 % 2 == 0 and len(parts) > 3
            parts.append(np.full(size, float(scale and not last)))
    return np.concatenate(parts).astype(np.float32)


def scores(models: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """Return scores [node, image, class] of images [node, image, row, column]."""
    from torch.nn import functional

    nodes, count = images.shape[:2]
    sliced = zip(models.split(SIZES, 1), SHAPES, strict=True)
    parameters = iter([part.reshape(nodes * s[0], *s[1:]) for part, s in sliced])

    def layer(x: torch.Tensor, stride: int = 1) -> torch.Tensor:
        weight, scale, shift = itertools.islice(parameters, 3)
        x = functional.conv2d(x, weight, stride=stride, padding=1, groups=nodes)
        return functional.group_norm(x, GROUPS * nodes, scale, shift)

    x = functional.relu(layer(images.transpose(0, 1)))
    for inputs, outputs in BLOCKS:
        stride = 2 if outputs > inputs else 1
        body = layer(functional.relu(layer(x, stride)))
        skip = x[:, :, ::stride, ::stride].unflatten(1, (nodes, inputs))
        x = functional.relu(
            body + functional.pad(skip, (0, 0, 0, 0, 0, outputs - inputs)).flatten(1, 2)
        )
    features = x.mean((2, 3)).view(count, nodes, FEATURES).transpose(0, 1)
    weight, shift = parameters
    weight = weight.view(nodes, CLASSES, FEATURES).transpose(1, 2)
    return features @ weight + shift.view(nodes, 1, CLASSES)


def _losses(models: torch.Tensor, rows: Floats, labels: Labels) -> torch.Tensor:
    """Return the loss of each node, summed over its images."""
    import torch

    found = scores(models, torch.from_numpy(rows)).transpose(1, 2)
    return torch.nn.functional.cross_entropy(
        found, torch.from_numpy(labels), reduction="none"
    ).sum(1)


def gradients(X: Floats, rows: Floats, labels: Labels) -> Floats:
    """Return the gradient of each node's mean loss."""
    import torch

    models = torch.from_numpy(X).requires_grad_()
    for at in range(0, labels.shape[1], CHUNK):
        part = slice(at, at + CHUNK)
        (_losses(models, rows[:, part], labels[:, part]).sum() / labels.shape[1]).backward()
    assert models.grad is not None
    found: Floats = models.grad.numpy()
    return found


def loss(x: Floats, rows: Floats, labels: Labels) -> float:
    """Return the mean loss of one model."""
    import torch

    model, parts = torch.from_numpy(x)[None], range(0, len(labels), CHUNK)
    with torch.no_grad():
        slices = (slice(a, a + CHUNK) for a in parts)
        losses = [_losses(model, rows[None, s], labels[None, s]) for s in slices]
    return float(torch.cat(losses).sum()) / len(labels)


def shards() -> Shards:
    """Return different random images for each node."""
    table = data.fashion_mnist()
    side = SIDE // SQUARE
    images = table.rows.reshape(-1, side, SQUARE, side, SQUARE).mean((2, 4))
    images /= images.std()
    order = np.random.default_rng(0).permutation(len(images))[: NODES * PER_NODE]
    order = order.reshape(NODES, PER_NODE)
    return Shards(images[order], table.labels[order])


def step_of(X: Floats, rows: Floats, labels: Labels, rate: float) -> Floats:
    """Return the models after one step of D-PSGD; of SGD if there is one."""
    topology, new = dec.ring(len(X)), np.empty_like(X)
    for at in range(0, len(X), TOGETHER):
        part = slice(at, at + TOGETHER)
        found = gradients(X[part], rows[part], labels[part])
        for node, g in enumerate(found, at):
            own, weights = topology.weights(node, 0)
            terms = dict(sorted({node: own, **weights}.items()))
            models = [X[j] for j in terms]
            new[node] = kernels.weighted_sum(list(terms.values()), models, rate=rate, g=g)
    return new


def measure(method: str, lr: float, steps: int = STEPS) -> list[Row]:
    """Return one run: losses of the mean model, and the mean loss of some nodes' models."""
    import torch

    torch.set_num_threads(1)
    parts = shards()
    checked = slice(None, None, parts.labels.size // CHECKED)
    rows = parts.rows.reshape(-1, *parts.rows.shape[2:])[checked]
    labels = parts.labels.reshape(-1)[checked]
    count = 1 if method == "centralized" else NODES
    X = np.tile(start(), (count, 1))
    marks = sorted({round(t) for t in np.geomspace(min(20, steps), steps, MARKS)})
    mean, local, distance = [], [], []
    for step in range(1, steps + 1):
        batches, targets = parts.batch(step, BATCH, SEED)
        if count == 1:
            batches = batches.reshape(1, -1, *batches.shape[2:])
            targets = targets.reshape(1, -1)
        X = step_of(X, batches, targets, lr * (1 - (step - 1) / steps))
        if step in marks:
            middle = X.mean(0, dtype=np.float64).astype(np.float32)
            some = X[:: max(1, count // LOCAL)]
            mean.append(loss(middle, rows, labels))
            local.append(float(np.mean([loss(x, rows, labels) for x in some])))
            squares = [float(np.square(x - middle, dtype=np.float64).sum()) for x in X]
            distance.append(float(np.sqrt(np.mean(squares))))
    row = {"part": "resnet", "method": method, "nodes": NODES, "steps": steps, "lr": lr}
    row |= {"batch": BATCH, "parameters": X.shape[1], "marks": marks}
    return [row | {"mean": mean, "local": local, "distance": distance}]
