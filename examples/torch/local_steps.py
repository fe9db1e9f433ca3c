"""Training in which ranks make many steps on their own between two exchanges.

    torchrun --nproc-per-node 4 examples/torch/local_steps.py --method diloco --sync-every 30

The network and the data are those of fashion_mnist.py. There is no DDP, and the loop is that of a
single process: the context manager counts the optimizer's steps.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import fashion_mnist
import torch
from loop import Task, batches, init_group, test_score
from torch import distributed as dist

import sparcml.torch

MOMENTUM = 0.9
METHODS = {
    "local_sgd": sparcml.torch.LocalSGD,
    "bmuf": sparcml.torch.BMUF,
    "diloco": sparcml.torch.DiLoCo,
    "sparse_loco": sparcml.torch.SparseLoCo,
    "sparta": sparcml.torch.SPARTA,
}


def train(task: Task, name: str, every: int, start: int, epochs: int, seed: int) -> None:
    """Train on the ranks of torch's default group, and test at the end."""
    torch.manual_seed(seed)
    model = task.model()
    optimizer = torch.optim.SGD(model.parameters(), task.learning_rate, MOMENTUM)
    with METHODS[name](
        model, optimizer, sync_every=every, synchronous_steps=start
    ) as training:
        for epoch in range(1, epochs + 1):
            for rows in batches(task, seed, epoch):
                optimizer.zero_grad()
                task.loss(model, rows).backward()
                optimizer.step()
    stats, score = training.stats, test_score(task, model)
    if dist.get_rank() == 0:
        print(
            f"{training.settings}: {stats.steps} steps, {task.metric} {score:.2f}, "
            f"{stats.bytes / 1e6:,.2f} MB sent, {stats.dense_bytes / 1e6:,.2f} MB with DDP",
            flush=True,
        )


def main() -> None:
    """Run on the ranks of torchrun; rank 0 prints."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--method", choices=METHODS, default="diloco")
    options.add_argument("--sync-every", type=int, default=30, help="Steps per round.")
    options.add_argument(
        "--synchronous-steps", type=int, default=0, help="First steps, as with DDP."
    )
    options.add_argument("--data", type=Path, help="Folder of the real images.")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--rows", type=int, help="Number of training rows.")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    task = fashion_mnist.task(chosen.data)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    init_group()
    start = chosen.synchronous_steps
    train(task, chosen.method, chosen.sync_every, start, chosen.epochs, chosen.seed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
