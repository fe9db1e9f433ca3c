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
WORDS = 4000  # the most frequent ones; all others share one index
WINDOW = 20
WIDTH = 160


class Reader(nn.Module):  # type: ignore[misc]
    """Embedding, LSTM, and scores of all words."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS + 1, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS + 1, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores of the word after each word."""
        return self.out(self.lstm(self.embed(words))[0])


def windows(text: str) -> Tensor:
    """Return the text as rows of word indices, each with the word that follows."""
    words = re.findall(r"\w+|[^\w\s]", text.lower())
    index = {w: i for i, (w, _) in enumerate(Counter(words).most_common(WORDS))}
    numbers = torch.tensor([index.get(word, WORDS) for word in words])
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


def task(path: Path | None) -> Task:
    """Return the task with the full text, or with the first chapters."""
    text = gzip.decompress((path or CHAPTERS).read_bytes()).decode()
    data = windows(text)
    is_test = torch.arange(len(data)) % 10 == 9
    test, data = data[is_test], data[~is_test]
    return Task(
        model=Reader,
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
