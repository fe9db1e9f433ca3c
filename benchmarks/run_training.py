r"""Measure steps of the networks of examples/torch with DDP, torch's hooks and our methods.

    sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_training.py \
        atis-wide dense,topk --network 100mbit

The methods of a job take turns. The rows are added to a file of benchmarks/results; `make
bench-training` runs all jobs. Accuracy is the subject of benchmarks/run_accuracy.py.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import distributed as dist
from training.kept import keep
from training.steps import measure
from training.tasks import made

RESULTS = Path(__file__).resolve().parent / "results"
KEY = ("network", "method", "ranks", "link")


def main() -> None:
    """Run on each rank; the first one saves the rows."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("model")
    options.add_argument("methods", help="separated by commas")
    options.add_argument("--network", default="none", help="link bandwidth")
    options.add_argument("--steps", type=int, default=32)
    options.add_argument("--seconds", type=float, default=900, help="time limit")
    options.add_argument("--results", type=Path, default=RESULTS)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = steps(chosen)
    if dist.get_rank() == 0:
        date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
        path = chosen.results / f"{date}-training-steps.json"
        for row in rows:
            print(said(keep(path, row, KEY, torch.__version__)), flush=True)
    dist.destroy_process_group()


def steps(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the seconds of the steps of each method."""
    task, methods = made(chosen.model), chosen.methods.split(",")
    found = measure(task, methods, chosen.steps, chosen.seconds)
    common = {
        "network": chosen.model,
        "ranks": dist.get_world_size(),
        "link": chosen.network,
        "batch": task.batch_size,
    }
    return [common | {"method": method} | row for method, row in found.items()]


def said(row: dict[str, Any]) -> str:
    """Describe a row."""
    return (
        "{network} {method} {ranks} ranks, {link}: step {0:.4f} s, compute {1:.4f} s "
        "({2} steps), {sent:.0f} bytes"
    ).format(median(row["steps"]), median(row["compute"]), len(row["steps"]), **row)


if __name__ == "__main__":
    main()
