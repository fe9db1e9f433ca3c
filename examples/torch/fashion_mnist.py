"""A small residual network on Fashion-MNIST: 28 x 28 pixels, 10 kinds of clothes.

    torchrun --nproc-per-node 2 examples/torch/fashion_mnist.py --method topk1

Without --data, images of the same shape are made up: a pattern for each kind, and noise. The
real ones are the four *-ubyte.gz files of the data set, in the folder given.
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

SIDE, KINDS = 28, 10
WIDTHS = (40, 96, 192, 192)
GROUPS = 8


class Images(NamedTuple):
    """Pixels from -1 to 1, and kinds."""

    pixels: Tensor
    kinds: Tensor


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions, and a way around them without parameters, as CIFAR's ResNets have."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.new, self.stride = outside - inside, 1 if outside == inside else 2
        self.first = nn.Conv2d(inside, outside, 3, self.stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm = nn.GroupNorm(GROUPS, outside, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways."""
        y = self.norm(self.second(functional.relu(self.norm(self.first(x)))))
        around = functional.pad(
            x[:, :, :: self.stride, :: self.stride], (0,) * 5 + (self.new,)
        )
        return functional.relu(y + around)


def network() -> nn.Module:
    """1.3 million parameters; the first layer takes the image to 7 x 7 places."""
    inside = (WIDTHS[0], *WIDTHS)
    return nn.Sequential(
        nn.Conv2d(1, WIDTHS[0], 4, 4),
        *(Block(inside[i], width) for i, width in enumerate(WIDTHS)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTHS[-1], KINDS),
    )


def read(folder: Path, part: str) -> Images:
    """One of the parts of the data set: train or t10k."""

    def values(name: str, start: int) -> Tensor:
        with gzip.open(folder / f"{part}-{name}-ubyte.gz") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=start)

    pixels = values("images-idx3", 16).reshape(-1, 1, SIDE, SIDE) / 127.5 - 1
    return Images(pixels, values("labels-idx1", 8).long())


def made_up(count: int, seed: int) -> Images:
    """Patterns of 7 x 7 squares that are the same for all seeds, and noise."""
    patterns = torch.randn(KINDS, 1, 7, 7, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    kinds = torch.randint(KINDS, (count,), generator=draw)
    shapes = functional.interpolate(patterns, SIDE)[kinds]
    noise = torch.randn(count, 1, SIDE, SIDE, generator=draw)
    return Images((0.3 * shapes + noise).clamp(-1, 1), kinds)


def loss(data: Images, model: nn.Module, rows: Tensor) -> Tensor:
    """The cross entropy of an image."""
    return functional.cross_entropy(model(data.pixels[rows]), data.kinds[rows])


def judge(data: Images, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Images that are told right, and all."""
    right = model(data.pixels[rows]).argmax(1) == data.kinds[rows]
    return float(right.sum()), float(len(rows))


def task(folder: Path | None, share: int = 1, larger: int = 1) -> Task:
    """With the real images, or made-up ones.

    Args:
        folder: Where the real ones are.
        share: One of so many is learnt from.
        larger: How many times larger batches are, and the rate.
    """
    if folder is None:
        data, test = made_up(2000, seed=1), made_up(400, seed=2)
    else:
        data, test = read(folder, "train"), read(folder, "t10k")
        data = Images(data.pixels[::share], data.kinds[::share])
    return Task(
        model=network,
        rows=len(data.kinds),
        tests=len(test.kinds),
        loss=partial(loss, data),
        judge=partial(judge, test),
        score=lambda part: 100 * part,
        metric="accuracy (%)",
        rate=0.05 * larger,
        batch=16 * larger,
        epochs=2,
    )


if __name__ == "__main__":
    main(task, __doc__)
