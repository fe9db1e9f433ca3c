"""An LSTM that says which character comes next, trained by DDP on the ranks of a job."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from sparcml import QSGD, Compressed, TopK
from sparcml.cli.demo.lstm_text import chapters
from sparcml.torch import compress

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from sparcml import Communicator

HIDDEN, EMBEDDING, CHARACTERS = 512, 32, 128
BATCH, WINDOW = 4, 32  # of a rank
RATE, MOMENTUM = 1.0, 0.9
DENSE, SPARSE = "dense", "TopK 0.5 % + 8 bit"
STEPS = {DENSE: 24, SPARSE: 112}
SHOWN = 8  # steps that make a point of the curve


class Reader(nn.Module):  # type: ignore[misc]
    """Embedding, LSTM, and scores of all characters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(CHARACTERS, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, text: Tensor) -> Tensor:
        """The mean surprise at the characters after the first."""
        scores = self.out(self.lstm(self.embed(text[:, :-1]))[0])
        return functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


@dataclass(frozen=True)
class Reading:
    """What one kind of sums has led to.

    Attributes:
        sums: Dense, or compressed.
        seconds: At the end of each step, since the first began.
        losses: The mean over ranks, of each step.
        sent: Bytes by a rank, in a step.
        values: Parameters of the network.
    """

    sums: str
    seconds: list[float]
    losses: list[float]
    sent: float
    values: int

    @property
    def step(self) -> float:
        """The seconds of one."""
        return self.seconds[-1] / len(self.seconds)

    def points(self) -> list[tuple[float, float]]:
        """Seconds and the mean loss of some steps together."""
        ends = range(SHOWN, len(self.losses) + 1, SHOWN)
        return [
            (self.seconds[e - 1], sum(self.losses[e - SHOWN : e]) / SHOWN) for e in ends
        ]


def numbers() -> Tensor:
    """The text, a number a character; rare ones count as one."""
    return torch.tensor([min(ord(c), CHARACTERS - 1) for c in chapters()])


def read(comm: Communicator, sums: str, steps: int, tell: Callable[[str], None]) -> Reading:
    """Train from the same start on the same pieces of text; a collective call."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Reader())
    values = sum(p.numel() for p in model.parameters())
    handle = None
    if sums != DENSE:
        handle = compress(model, Compressed(TopK(0.005), QSGD(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    text, draw = numbers(), torch.Generator().manual_seed(comm.rank)
    span = torch.arange(WINDOW + 1)
    seconds: list[float] = []
    losses = torch.zeros(steps, dtype=torch.float64)
    comm.barrier()
    start = time.perf_counter()
    for step in range(steps):
        tell(f"{sums}: step {step + 1} of {steps}")
        first = torch.randint(len(text) - WINDOW, (BATCH, 1), generator=draw)
        optimizer.zero_grad()
        loss = model(text[first + span])
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
        seconds.append(time.perf_counter() - start)
    means = comm.allreduce(losses.numpy(), op="mean")
    dense = 8 * values * (comm.size - 1) / comm.size  # a ring's
    sent = dense if handle is None else handle.stats.bytes / steps
    if handle is not None:
        handle.close()
    return Reading(sums, seconds, [float(x) for x in means], sent, values)
