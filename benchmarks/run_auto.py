"""Measure "auto" on the networks of the examples: its cost where there is little to gain.

    sparcml run --engine torch -n 2 benchmarks/run_auto.py --json FILE
    sparcml run --engine torch -n 2 --network 100mbit benchmarks/run_auto.py --networks gpt

Steps of plain DDP, of a second plain DDP (for the noise), of the recommended method and of
"auto" alternate, once auto has decided. The slowest rank counts. The GPT has AdamW, the others the
optimizer of the examples. The data are synthetic, or those of the package; those of the
recommender have sparse gradients, which auto does not consider.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import distributed as dist
from training.steps import Steps, timed
from training.tasks import synthetic

import sparcml.torch
from sparcml.bench.results import write_json
from sparcml.environment import describe

NETWORKS = ("fashion-mnist", "atis", "moby-dick", "gpt", "clicks")
COLUMNS = ("plain", "again", "recommended", "auto")


def measure(name: str, steps: int) -> dict[str, object]:
    """Return one row, the same on all ranks."""
    turns = [Steps(synthetic(name), "dense", adamw=name == "gpt") for _ in COLUMNS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the recommender has no large matrix
        handles: list[Any] = [
            sparcml.torch.compress(one.model, method, optimizer=one.optimizer)
            for one, method in zip(turns[2:], COLUMNS[2:], strict=True)
        ]
    auto, handle = turns[-1], handles[-1]
    while handle.decision is None or not handle.decision.final:
        auto.step()
    for step in range(steps):
        first = step % len(turns)  # so that each comes after each
        for one in (*turns[first:], *turns[:first])[:: 1 if step % 2 else -1]:
            one.seconds.append(timed(one.step))
    seconds = [median(one.seconds) for one in turns]
    decided = handle.explain().splitlines()[0]
    estimates = [(e.name, e.step, e.stage.name.lower()) for e in handle.decision.estimates]
    for one in handles:
        one.close()
    return {
        "network": name,
        "values": sum(p.numel() for p in auto.model.parameters()),
        "ranks": dist.get_world_size(),
        "steps": steps,
        **dict(zip(COLUMNS, seconds, strict=True)),
        "ratio": seconds[-1] / seconds[0],
        "noise": abs(seconds[1] / seconds[0] - 1),
        "decided": decided,
        "estimates": estimates,
    }


def main() -> None:
    """Run on each rank; the first one reports."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=102)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = []
    for name in chosen.networks.split(","):
        rows.append(measure(name, chosen.steps))
        if dist.get_rank() == 0:
            print(rows[-1], flush=True)
            if chosen.json:
                facts = describe(f"--steps {chosen.steps}", 0, torch=str(torch.__version__))
                write_json(chosen.json, facts, rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
