"""Dense and compressed gradients of a character LSTM by DDP: time, bytes and loss.

    sparcml run --engine torch -n 4 --network 100mbit examples/torch/lstm_speed.py

At 100 Mbit/s this small LSTM behaves as a wide one does at 1 Gbit/s.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import sparcml
from sparcml.costs import ring_nbytes

if TYPE_CHECKING:
    from torch import Tensor

TEXT = Path(__file__).with_name("moby-dick.txt.gz")  # three chapters, public domain
HIDDEN, EMBEDDING, CHARACTERS = 512, 32, 128
BATCH, WINDOW = 4, 32  # per rank
METHODS = {
    "dense": None,
    "TopK 0.5 % + 8 bit": sparcml.Compressed(sparcml.TopK(0.005), sparcml.QSGD(8)),
}


class Reader(nn.Module):  # type: ignore[misc]
    """Embedding, LSTM, and scores of all characters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(CHARACTERS, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, text: Tensor) -> Tensor:
        """Return the mean cross entropy of the characters after the first."""
        scores = self.out(self.lstm(self.embed(text[:, :-1]))[0])
        return functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def train(
    comm: sparcml.Communicator, method: sparcml.Method | None, steps: int
) -> tuple[float, float, float]:
    """Return the seconds and bytes per step, and the mean loss of the last steps."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Reader())
    handle = None if method is None else sparcml.torch.compress(model, method)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    characters = gzip.decompress(TEXT.read_bytes()).decode()
    text = torch.tensor([min(ord(c), CHARACTERS - 1) for c in characters])
    random, span = torch.Generator().manual_seed(comm.rank), torch.arange(WINDOW + 1)
    losses = torch.zeros(steps, dtype=torch.float64)
    comm.barrier()
    start = time.perf_counter()
    for step in range(steps):
        first = torch.randint(len(text) - WINDOW, (BATCH, 1), generator=random)
        optimizer.zero_grad()
        loss = model(text[first + span])
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    seconds = (time.perf_counter() - start) / steps
    mean = comm.allreduce(losses.numpy(), op="mean")[-8:].mean()
    parameters = sum(p.numel() for p in model.parameters())
    sent = float(ring_nbytes(comm.size, 4 * parameters))  # DDP's gloo allreduce is a ring
    if handle is not None:
        sent = handle.stats.bytes / steps
        handle.close()
    return seconds, sent, float(mean)


def main() -> None:
    """Train with dense and with compressed gradients, and print one row each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=48)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with sparcml.world() as comm:
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        for name, method in METHODS.items():
            seconds, sent, loss = train(comm, method, options.steps)
            if comm.rank == 0:
                print(
                    f"{name:20} {1e3 * seconds:7.0f} ms per step, {sent / 1e6:7.2f} MB per "
                    f"rank and step, loss {loss:.2f}"
                )
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
