"""Slot tagging as in ATIS: an LSTM labels each word of a question with its slot.

    torchrun --nproc-per-node 2 examples/torch/atis.py --method topk

Without --data, the sentences are synthetic. The real ones are read in the CNTK text format from
atis.train.ctf.gz and atis.test.ctf.gz in the given folder. Each word is seen with its neighbours,
as in CNTK's example.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from loop import Task, main
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

WORDS, SLOTS = 943, 129
EMBEDDING, HIDDEN = 150, 300
WIDE = 1200  # of two layers: 20 million parameters
NO_WORD, NO_SLOT = WORDS, -100  # padding
PART = re.compile(r"\|S([02]) (\d+):1")


class Sentences(NamedTuple):
    """Indices of words and slots, one row per sentence, padded to the longest."""

    words: Tensor
    slots: Tensor


class Tagger(nn.Module):  # type: ignore[misc]
    """Embedding of the previous, this and the next word; LSTM; slots."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS + 1, EMBEDDING)
        self.lstm = nn.LSTM(3 * EMBEDDING, hidden, layers, batch_first=True)
        self.out = nn.Linear(hidden, SLOTS)

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores of all slots for each word."""
        x = self.embed(words)
        before = functional.pad(x, (0, 0, 1, 0))[:, :-1]
        after = functional.pad(x, (0, 0, 0, 1))[:, 1:]
        return self.out(self.lstm(torch.cat([before, x, after], 2))[0])


def read(path: Path) -> Sentences:
    """Read the sentences of a file: words are S0, slots S2."""
    sentences: dict[str, tuple[list[int], list[int]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            pair = sentences.setdefault(line.split(maxsplit=1)[0], ([], []))
            parts = dict(PART.findall(line))
            pair[0].append(int(parts["0"]))
            pair[1].append(int(parts["2"]))
    return _padded(list(sentences.values()))


def synthetic(count: int, seed: int) -> Sentences:
    """Return random sentences; a slot depends on the word and the previous one."""
    draw = torch.Generator().manual_seed(seed)
    rules = torch.randint(SLOTS, (WORDS, 2), generator=torch.Generator().manual_seed(0))
    rules[: WORDS // 4] = 0  # frequent words have no slot
    pairs = []
    for _ in range(count):
        length = int(torch.randint(5, 20, (1,), generator=draw))
        words = (WORDS * torch.rand(length, generator=draw) ** 3).long()
        last = torch.cat([words[:1], words[:-1]])
        pairs.append((words.tolist(), rules[words, last % 2].tolist()))
    return _padded(pairs)


def _padded(pairs: list[tuple[list[int], list[int]]]) -> Sentences:
    words, slots = (
        nn.utils.rnn.pad_sequence(
            [torch.tensor(row) for row in column],
            batch_first=True,
            padding_value=padding,
        )
        for column, padding in zip(
            zip(*pairs, strict=True), (NO_WORD, NO_SLOT), strict=True
        )
    )
    return Sentences(words, slots)


def _batch(data: Sentences, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the words and slots of a batch, cut to its longest sentence."""
    words, slots = data.words[rows], data.slots[rows]
    length = int((words != NO_WORD).sum(1).max())
    return words[:, :length], slots[:, :length]


def loss(data: Sentences, model: nn.Module, rows: Tensor) -> Tensor:
    """Return the mean cross entropy per word."""
    words, slots = _batch(data, rows)
    scores = model(words)
    return functional.cross_entropy(
        scores.flatten(0, 1), slots.flatten(), ignore_index=NO_SLOT
    )


def evaluate(data: Sentences, model: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the number of words with the wrong slot, and of all words."""
    words, slots = _batch(data, rows)
    wrong = (model(words).argmax(2) != slots) & (slots != NO_SLOT)
    return float(wrong.sum()), float((slots != NO_SLOT).sum())


def task(folder: Path | None, hidden: int = HIDDEN, layers: int = 1) -> Task:
    """Return the task with the real sentences, or synthetic ones."""
    if folder is None:
        data, test = synthetic(1000, seed=1), synthetic(200, seed=2)
    else:
        data, test = (read(folder / f"atis.{part}.ctf.gz") for part in ("train", "test"))
    return Task(
        model=lambda: Tagger(hidden, layers),
        rows=len(data.words),
        tests=len(test.words),
        loss=partial(loss, data),
        evaluate=partial(evaluate, test),
        score=lambda fraction: 100 * fraction,
        metric="slot error (%)",
        learning_rate=0.2,
        batch_size=8,
        epochs=8,
    )


def wide(folder: Path | None) -> Task:
    """Return the task with 20 million parameters and half the batch size."""
    return replace(task(folder, WIDE, layers=2), batch_size=4)


if __name__ == "__main__":
    main(task, __doc__)
