"""A network of ResNet20's size on a ring of 112 nodes, step by step: centralized and D-PSGD.

The layers are those of ResNet20 (He et al., 2015), with group normalization in place of batch
normalization, whose statistics would be those of four images. Images are averaged over squares of
2 x 2 pixels, so that 112 nodes fit in some core-minutes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from workloads import data

from sparcml import decentralized as dec

from . import vectorized

Row = dict[str, Any]

NODES, BATCH, PER_NODE, SEED = 112, 4, 500, 1
STEPS, LR = 240, 0.05
METHODS = ("centralized", "D-PSGD")
WIDTHS, BLOCKS, GROUPS = (16, 32, 64), 3, 8
SIDE, SQUARE = 28, 2
EVALUATED, LOCAL, MARKS = 2000, 4, 12


class Block(nn.Module):
    """Two convolutions and a shortcut, which has no parameters."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride = 1 if before == after else 2
        self.first = nn.Conv2d(before, after, 3, self.stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(GROUPS, after) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the block."""
        y = torch.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        short = x[:, :, :: self.stride, :: self.stride]
        missing = y.shape[1] - short.shape[1]
        return torch.relu(y + nn.functional.pad(short, (0, 0, 0, 0, 0, missing)))


def resnet20() -> nn.Sequential:
    """Return the network, for images with one channel and ten classes."""
    torch.manual_seed(SEED)
    layers: list[nn.Module] = [nn.Conv2d(1, WIDTHS[0], 3, 1, 1, bias=False)]
    layers += [nn.GroupNorm(GROUPS, WIDTHS[0]), nn.ReLU()]
    before = WIDTHS[0]
    for width in WIDTHS:
        for _ in range(BLOCKS):
            layers.append(Block(before, width))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


class Models:
    """Losses and gradients of models that are rows of a matrix."""

    def __init__(self) -> None:
        self.network = resnet20()
        self.shapes = {name: p.shape for name, p in self.network.named_parameters()}
        self.sizes = [shape.numel() for shape in self.shapes.values()]

    def start(self) -> Any:
        """Return the first model as a vector."""
        return np.concatenate([p.detach().reshape(-1) for p in self.network.parameters()])

    def loss(self, model: torch.Tensor, images: Any, labels: Any) -> torch.Tensor:
        """Return the mean loss of a model."""
        parts = zip(self.shapes.items(), model.split(self.sizes), strict=True)
        named = {name: part.view(shape) for (name, shape), part in parts}
        scores = functional_call(self.network, named, (torch.from_numpy(images),))
        return nn.functional.cross_entropy(scores, torch.from_numpy(labels))

    def gradient(self, model: Any, images: Any, labels: Any) -> Any:
        """Return the gradient of a model on a batch."""
        x = torch.from_numpy(model).requires_grad_()
        self.loss(x, images, labels).backward()
        assert x.grad is not None
        return x.grad.numpy()

    def value(self, model: Any, images: Any, labels: Any) -> float:
        """Return the loss of a model without gradients."""
        with torch.no_grad():
            return float(self.loss(torch.from_numpy(model), images, labels))


def images() -> tuple[Any, Any]:
    """Return images of unit variance, of shape (count, 1, 14, 14), in random order."""
    table = data.fashion_mnist()
    side = SIDE // SQUARE
    small = table.rows.reshape(-1, side, SQUARE, side, SQUARE).mean((2, 4)).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(small))[: NODES * PER_NODE]
    small = (small - small.mean()) / small.std()
    return small[order][:, None], np.asarray(table.labels, np.int64)[order]


def measure(method: str, steps: int = STEPS) -> list[Row]:
    """Return one run: the loss of the mean model, and the mean loss of some nodes' models."""
    torch.set_num_threads(1)
    start = time.process_time()
    models, (pixels, labels) = Models(), images()
    some = slice(None, None, len(labels) // EVALUATED)
    mixer = vectorized.DPSGD(vectorized.Mixer(dec.ring(NODES)))
    X = np.tile(models.start(), (NODES if method != "centralized" else 1, 1))
    marks = sorted({round(t) for t in np.geomspace(10, steps, MARKS)})
    mean, local, distance = [], [], []
    for step in range(1, steps + 1):
        chosen = np.random.default_rng((SEED, step)).integers(PER_NODE, size=(NODES, BATCH))
        chosen += PER_NODE * np.arange(NODES)[:, None]
        lr = LR * (1 - (step - 1) / steps)
        if method == "centralized":
            every = chosen.reshape(-1)
            X = X - np.float32(lr) * models.gradient(X[0], pixels[every], labels[every])
        else:
            each = zip(X, chosen, strict=True)
            G = np.stack([models.gradient(x, pixels[rows], labels[rows]) for x, rows in each])
            X = mixer.step(X, G, lr)
        if step in marks:
            middle = X.mean(0, dtype=np.float64).astype(np.float32)
            mean.append(models.value(middle, pixels[some], labels[some]))
            nodes = X[:: max(1, len(X) // LOCAL)]
            local.append(
                float(np.mean([models.value(x, pixels[some], labels[some]) for x in nodes]))
            )
            square = np.square(X - middle, dtype=np.float64).sum(1).mean()
            distance.append(float(np.sqrt(square)))
    row = {"part": "resnet", "method": method, "nodes": NODES, "steps": steps, "lr": LR}
    row |= {"batch": BATCH, "parameters": len(models.start()), "marks": marks}
    row |= {"minutes": (time.process_time() - start) / 60}
    return [row | {"mean": mean, "local": local, "distance": distance}]
