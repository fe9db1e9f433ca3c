"""A language model of Moby-Dick: a small GPT predicts the next character.

    torchrun --nproc-per-node 2 examples/torch/gpt.py --method qsgd

Without --data, it reads the first chapters, in moby-dick.txt.gz; --data is a gzipped
text. One of ten windows is used for the test. Transformers are customarily trained with AdamW;
this example keeps the SGD of its siblings, benchmarks/accuracy uses AdamW.
"""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from loop import Task, main
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

CHAPTERS = Path(__file__).with_name("moby-dick.txt.gz")  # the first three; public domain
WINDOW = 64
LAYERS, WIDTH, HEADS = 3, 96, 4
INITIAL_DEVIATION = 0.02  # of weights, as in GPT-2


class Layer(nn.Module):  # type: ignore[misc]
    """Causal self-attention and two linear maps, each after a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.attend = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.before_maps = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input plus both parts."""
        rows, length, _ = x.shape
        parts = self.attend(self.before_attention(x)).view(rows, length, 3, HEADS, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrow(functional.gelu(self.widen(self.before_maps(x))))


class GPT(nn.Module):  # type: ignore[misc]
    """Embeddings of characters and positions, layers, and scores of all characters.

    Args:
        symbols: Number of different characters.
    """

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, WIDTH)
        self.position = nn.Embedding(WINDOW, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, symbols, bias=False)
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, std=INITIAL_DEVIATION)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(self, characters: Tensor) -> Tensor:
        """Return the scores of the character after each character."""
        x = self.embed(characters) + self.position.weight[: characters.shape[1]]
        return self.out(self.norm(self.layers(x)))


def windows(text: str) -> tuple[Tensor, int]:
    """Return rows of character indices, each with the next one, and the number of symbols."""
    index = {symbol: i for i, symbol in enumerate(sorted(set(text)))}
    numbers = torch.tensor([index[symbol] for symbol in text])
    return numbers.unfold(0, WINDOW + 1, WINDOW), len(index)


def loss(data: Tensor, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean cross entropy per character."""
    characters = data[rows]
    scores = model(characters[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), characters[:, 1:].flatten())


def evaluate(data: Tensor, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the sum of the cross entropy, and the number of characters."""
    characters = float(len(rows) * WINDOW)
    return float(loss(data, model, rows)) * characters, characters


def task(path: Path | None) -> Task:
    """Return the task with the full text, or with the first chapters."""
    text = gzip.decompress((path or CHAPTERS).read_bytes()).decode()
    data, symbols = windows(text)
    is_test = torch.arange(len(data)) % 10 == 9
    test, data = data[is_test], data[~is_test]
    return Task(
        model=lambda: GPT(symbols),
        rows=len(data),
        tests=len(test),
        loss=partial(loss, data),
        evaluate=partial(evaluate, test),
        score=lambda mean: mean,
        metric="loss per character",
        learning_rate=0.1,
        batch_size=8,
        epochs=2,
    )


if __name__ == "__main__":
    main(task, __doc__)
