"""Measure the cost of "auto" where there is little to gain, on the networks of the examples.

    sparcml run --engine torch -n 2 benchmarks/run_auto.py --json FILE

Steps of plain DDP, of a second plain DDP (for the noise), and of one with
`compress(model, "auto")` alternate, once auto has decided. The slowest rank counts. The data
are synthetic; those of the recommender have sparse gradients, which auto does not consider.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import torch
from torch import distributed as dist
from training.steps import Steps, timed
from training.tasks import synthetic

import sparcml.torch
from sparcml.bench.results import write_json
from sparcml.environment import describe

NETWORKS = ("fashion-mnist", "atis", "moby-dick", "clicks")
DECIDING = 12  # steps until auto has made up its mind


def measure(name: str, steps: int) -> dict[str, object]:
    """Return one row, the same on all ranks."""
    turns = [Steps(synthetic(name), "dense") for _ in range(3)]
    auto = turns[-1]
    handle = sparcml.torch.compress(auto.model, "auto")
    for _ in range(DECIDING):
        auto.step()
    for step in range(steps):
        first = step % len(turns)  # so that each comes after each
        for one in (*turns[first:], *turns[:first])[:: 1 if step % 2 else -1]:
            one.seconds.append(timed(one.step))
    seconds = [median(one.seconds) for one in turns]
    decided = handle.explain().splitlines()[0]
    handle.close()
    return {
        "network": name,
        "values": sum(p.numel() for p in auto.model.parameters()),
        "ranks": dist.get_world_size(),
        "steps": steps,
        **dict(zip(("plain", "again", "auto"), seconds, strict=True)),
        "ratio": seconds[2] / seconds[0],
        "noise": abs(seconds[1] / seconds[0] - 1),
        "decided": decided,
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
