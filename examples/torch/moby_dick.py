"""A language model of Moby-Dick: an LSTM predicts the next word.

    torchrun --nproc-per-node 2 examples/torch/moby_dick.py --method topk1

Without --data, it reads the first chapters, in moby-dick.txt.gz; --data is a gzipped
text. One of ten windows is used for the test.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
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
WORDS = 4000
WINDOW = 20
WIDTH = 160


class Reader(nn.Module):  # type: ignore[misc]
    """Embedding, LSTM, and scores of all words."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words + 1, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, words + 1, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores of the word after each word."""
        return self.out(self.lstm(self.embed(words))[0])


def windows(text: str, count: int) -> Tensor:
    """Return the text as rows of word indices, each with the word that follows."""
    words = re.findall(r"\w+|[^\w\s]", text.lower())
    index = {w: i for i, (w, _) in enumerate(Counter(words).most_common(count))}
    numbers = torch.tensor([index.get(word, count) for word in words])
    return numbers.unfold(0, WINDOW + 1, WINDOW)


def loss(data: Tensor, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean cross entropy per word."""
    words = data[rows]
    scores = model(words[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())


def evaluate(data: Tensor, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the sum of the cross entropy, and the number of words."""
    words = float(len(rows) * WINDOW)
    return float(loss(data, model, rows)) * words, words


def task(path: Path | None, words: int = WORDS, width: int = WIDTH) -> Task:
    """Return the task with the full text, or with the first chapters.

    Args:
        path: A gzipped text.
        words: Number of the most frequent words; all others share one index.
        width: Size of embeddings and of the LSTM.
    """
    text = gzip.decompress((path or CHAPTERS).read_bytes()).decode()
    data = windows(text, words)
    is_test = torch.arange(len(data)) % 10 == 9
    test, data = data[is_test], data[~is_test]
    return Task(
        model=lambda: Reader(words, width),
        rows=len(data),
        tests=len(test),
        loss=partial(loss, data),
        evaluate=partial(evaluate, test),
        score=math.exp,
        metric="perplexity",
        learning_rate=1.0,
        batch_size=8,
        epochs=2,
    )


if __name__ == "__main__":
    main(task, __doc__)
