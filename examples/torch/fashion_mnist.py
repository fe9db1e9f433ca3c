"""A small residual network on Fashion-MNIST: 28 x 28 pixels, 10 classes.

    torchrun --nproc-per-node 2 examples/torch/fashion_mnist.py --method topk1

Without --data, the images are synthetic: one pattern per class, and noise. The real ones are the
four *-ubyte.gz files of the data set in the given folder.
"""

from __future__ import annotations

import gzip
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from loop import Task, main
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

SIDE, CLASSES = 28, 10
WIDTHS = (40, 96, 192, 192)
GROUPS = 8


class Images(NamedTuple):
    """Pixels from -1 to 1, and labels."""

    pixels: Tensor
    labels: Tensor


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions and a shortcut without parameters, as in the ResNets for CIFAR."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.new, self.stride = (
            channels_out - channels_in,
            1 if channels_out == channels_in else 2,
        )
        self.first = nn.Conv2d(channels_in, channels_out, 3, self.stride, 1, bias=False)
        self.second = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm = nn.GroupNorm(GROUPS, channels_out, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the convolutions and the shortcut."""
        y = self.norm(self.second(functional.relu(self.norm(self.first(x)))))
        shortcut = functional.pad(
            x[:, :, :: self.stride, :: self.stride], (0,) * 5 + (self.new,)
        )
        return functional.relu(y + shortcut)


def network(widths: tuple[int, ...] = WIDTHS) -> nn.Module:
    """Return a network of blocks of some widths; the first layer reduces to 7 x 7 pixels.

    By default it has 1.3 million parameters.
    """
    channels_in = (widths[0], *widths)
    return nn.Sequential(
        nn.Conv2d(1, widths[0], 4, 4),
        *(Block(channels_in[i], width) for i, width in enumerate(widths)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], CLASSES),
    )


def read(folder: Path, part: str) -> Images:
    """Read a part of the data set: train or t10k."""

    def values(name: str, start: int) -> Tensor:
        with gzip.open(folder / f"{part}-{name}-ubyte.gz") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=start)

    pixels = values("images-idx3", 16).reshape(-1, 1, SIDE, SIDE) / 127.5 - 1
    return Images(pixels, values("labels-idx1", 8).long())


def synthetic(count: int, seed: int) -> Images:
    """Return patterns of 7 x 7 squares, the same for all seeds, with noise."""
    patterns = torch.randn(CLASSES, 1, 7, 7, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=draw)
    shapes = functional.interpolate(patterns, SIDE)[labels]
    noise = torch.randn(count, 1, SIDE, SIDE, generator=draw)
    return Images((0.3 * shapes + noise).clamp(-1, 1), labels)


def loss(data: Images, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean cross entropy per image."""
    return functional.cross_entropy(model(data.pixels[rows]), data.labels[rows])


def evaluate(data: Images, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the number of correct predictions, and of all."""
    correct = model(data.pixels[rows]).argmax(1) == data.labels[rows]
    return float(correct.sum()), float(len(rows))


def task(folder: Path | None, share: int = 1, larger: int = 1) -> Task:
    """Return the task with the real images, or synthetic ones.

    Args:
        folder: Folder of the real images.
        share: Train on every n-th image.
        larger: Factor of the batch size and the learning rate.
    """
    if folder is None:
        data, test = synthetic(2000, seed=1), synthetic(400, seed=2)
    else:
        data, test = read(folder, "train"), read(folder, "t10k")
        data = Images(data.pixels[::share], data.labels[::share])
    return Task(
        model=network,
        rows=len(data.labels),
        tests=len(test.labels),
        loss=partial(loss, data),
        evaluate=partial(evaluate, test),
        score=lambda fraction: 100 * fraction,
        metric="accuracy (%)",
        learning_rate=0.05 * larger,
        batch_size=16 * larger,
        epochs=2,
    )


if __name__ == "__main__":
    main(task, __doc__)
