"""Training in which each rank exchanges its model with its neighbours on a ring.

    torchrun --nproc-per-node 4 examples/torch/neighbors.py --method dpsgd

The network and the data are those of fashion_mnist.py. There is no DDP. `optimizer.step()` mixes
the model with the neighbours, and the mean of all models is evaluated.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fashion_mnist
import torch
from loop import Task, batches, init_group, test_score
from torch import distributed as dist

import sparcml
from sparcml import decentralized as dec

if TYPE_CHECKING:
    from collections.abc import Callable

MOMENTUM = 0.9
METHODS: dict[str, Callable[[dec.Topology], dec.Method]] = {
    "dpsgd": dec.DPSGD,
    "dcd": lambda t: dec.DCD(t, sparcml.QSGD(bits=8)),
    "choco": lambda t: dec.Choco(t, sparcml.TopK(0.05), gamma=0.1),
    "push_sum": dec.PushSum,
    "gradient_tracking": dec.GradientTracking,
    "adpsgd": dec.ADPSGD,
}


def train(task: Task, name: str, topology: dec.Topology, epochs: int, seed: int) -> None:
    """Train on the ranks of torch's default group, and test after each epoch."""
    torch.manual_seed(seed)
    module = task.model()
    optimizer = torch.optim.SGD(module.parameters(), task.learning_rate, MOMENTUM)
    model = sparcml.torch.Decentralized(module, optimizer, METHODS[name](topology))
    for epoch in range(1, epochs + 1):
        losses = []
        for rows in batches(task, seed, epoch):
            optimizer.zero_grad()
            loss = task.loss(model, rows)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        score, distance = test_score(task, model.averaged()), model.consensus_distance()
        if dist.get_rank() == 0:
            print(
                f"{name}, epoch {epoch}: loss {sum(losses) / len(losses):.4f}, "
                f"{task.metric} {score:.2f}, consensus distance {distance:.3f}, "
                f"{model.stats.bytes / 1e6:,.2f} MB sent",
                flush=True,
            )
    model.close()


def main() -> None:
    """Run on the ranks of torchrun; rank 0 prints."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--method", choices=METHODS, default="dpsgd")
    options.add_argument("--topology", default="ring", help="Name such as ring or torus.")
    options.add_argument("--data", type=Path, help="Folder of the real images.")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--rows", type=int, help="Number of training rows.")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    task = fashion_mnist.task(chosen.data)
    task = replace(task, rows=min(task.rows, chosen.rows or task.rows))
    init_group()
    topology = dec.by_name(chosen.topology, dist.get_world_size())
    train(task, chosen.method, topology, chosen.epochs, chosen.seed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
