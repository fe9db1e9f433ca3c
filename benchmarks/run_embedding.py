"""Reduce rows of a large embedding table without loss: ours, and gloo's sparse allreduce.

    sparcml run --engine torch -n 4 --network 1gbit benchmarks/run_embedding.py --link 1gbit

Every rank has used some rows, chosen at random. Ours is what `wrap` does before a step;
gloo's is `torch.distributed.all_reduce` of the sparse gradient, as in DDP. Both alternate and
start together; the slowest rank counts. Their results are compared.
"""

from __future__ import annotations

import argparse
import resource
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from training.steps import timed

import sparcml
import sparcml.torch
from sparcml.bench.results import write_json
from sparcml.environment import describe

WIDTH = 16


class Table:
    """A table and its gradients."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._embedding = nn.Embedding.from_pretrained(
            torch.zeros(rows, WIDTH), freeze=False, sparse=True
        )
        optimizer = torch.optim.SGD(self._embedding.parameters(), lr=0.1)
        self.handle = sparcml.torch.wrap(optimizer, sparcml.Dense())
        self._draw = torch.Generator().manual_seed(dist.get_rank())

    def gradient(self, used: int) -> torch.Tensor:
        """Compute the gradient of a batch that uses some rows."""
        places = torch.randint(0, self.rows, (used,), generator=self._draw)
        self._embedding.zero_grad()
        self._embedding(places).square().sum().add(self._embedding(places).sum()).backward()
        found = self._embedding.weight.grad
        assert found is not None
        return found

    def ours(self) -> None:
        """Replace the gradient by the mean over all ranks."""
        self.handle.aggregate()

    def mean(self) -> torch.Tensor:
        """Return the gradient."""
        found = self._embedding.weight.grad
        assert found is not None
        return found


def measure(table: Table, used: int, runs: int) -> dict[str, Any]:
    """Return one row, the same on all ranks."""
    ours, gloo = [], []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for run in range(3 + runs):
        gradient = table.gradient(used)
        copy = gradient.detach().clone()
        took = timed(table.ours)
        mean = table.mean()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        theirs = timed(partial(dist.all_reduce, copy))
        expected = copy.coalesce().values() / dist.get_world_size()
        torch.testing.assert_close(mean.coalesce().values(), expected)
        if run >= 3:
            ours.append(took)
            gloo.append(theirs)
    return {
        "table": table.rows,
        "used": used,
        "ranks": dist.get_world_size(),
        "runs": runs,
        "ours": median(ours),
        "gloo": median(gloo),
        "grown_mb": grown / 1024,
        "wrong": 0,  # or it would have stopped
    }


def main() -> None:
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", default="loopback")
    options.add_argument("--tables", default="1000000,10000000")
    options.add_argument("--used", default="1000,10000,100000")
    options.add_argument("--runs", type=int, default=30)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = []
    for size in chosen.tables.split(","):
        table = Table(int(size))
        for used in map(int, chosen.used.split(",")):
            runs = chosen.runs if used < 100_000 else max(5, chosen.runs // 5)
            rows.append(measure(table, used, runs))
            if dist.get_rank() == 0:
                print(rows[-1], flush=True)
        table.handle.close()
    if dist.get_rank() == 0 and chosen.json:
        facts = describe(
            f"--runs {chosen.runs}", 0, torch=str(torch.__version__), link=chosen.link
        )
        write_json(chosen.json, facts, rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
