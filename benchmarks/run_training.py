r"""Train the networks of examples/torch with DDP, with torch's hooks and ours, one job at a time.

    sparcml run --engine torch -n 4 benchmarks/run_training.py accuracy atis topk --seed 0
    sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_training.py \
        steps atis-wide dense,topk --network 100mbit

`accuracy` trains once, without an emulated network, which does not affect the result.
`steps` measures the seconds per step on the given links, of all its methods in turn. `epoch`
trains the first epoch on them, to verify the product of both. Each adds its rows to a file of
benchmarks/results; `make bench-training` runs all of them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import distributed as dist
from training.kept import keep
from training.roster import NETWORKS
from training.tasks import made

RESULTS = Path(__file__).resolve().parent / "results"
NAMED = {
    "accuracy": ("network", "method", "ranks", "seed"),
    "steps": ("network", "method", "ranks", "link"),
    "epoch": ("network", "method", "ranks", "link"),
}


def main() -> None:
    """Run on each rank; the first one saves the row."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("part", choices=NAMED)
    options.add_argument("model")
    options.add_argument("method", help="for steps: several, separated by commas")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--network", default="none", help="link bandwidth")
    options.add_argument("--steps", type=int, default=32)
    options.add_argument("--seconds", type=float, default=900, help="time limit of steps")
    options.add_argument("--results", type=Path, default=RESULTS)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = {"accuracy": accuracy, "steps": steps, "epoch": epoch}[chosen.part](chosen)
    if dist.get_rank() == 0:
        date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
        path = chosen.results / f"{date}-training-{chosen.part}.json"
        for row in rows:
            print(said(keep(path, row, NAMED[chosen.part], torch.__version__)), flush=True)
    dist.destroy_process_group()


def accuracy(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the curve of a training run."""
    from loop import train

    task, start = made(chosen.model), time.perf_counter()
    epochs = NETWORKS[chosen.model].epochs
    points = list(train(task, chosen.method, epochs, chosen.seed))
    row = {
        "seed": chosen.seed,
        "batch": task.batch_size,
        "metric": task.metric,
        "steps_made": points[-1].steps,
        "losses": [round(p.loss, 5) for p in points],
        "scores": [round(p.score, 4) for p in points],
        "score": points[-1].score,
        "sent": points[-1].sent,
        "seconds": time.perf_counter() - start,
    }
    return [about(chosen) | row]


def epoch(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the first epoch of a training run, on emulated links."""
    from loop import train

    task, epochs = made(chosen.model), NETWORKS[chosen.model].epochs
    point = next(train(task, chosen.method, epochs, chosen.seed))
    row = {
        "link": chosen.network,
        "steps_made": point.steps,
        "loss": round(point.loss, 5),
        "score": round(point.score, 4),
        "seconds": point.seconds,
    }
    return [about(chosen) | row]


def steps(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the seconds of the steps of each method."""
    from training.steps import measure

    task, methods = made(chosen.model), chosen.method.split(",")
    found = measure(task, methods, chosen.steps, chosen.seconds)
    common = about(chosen) | {"link": chosen.network, "batch": task.batch_size}
    return [common | {"method": method} | row for method, row in found.items()]


def about(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the command line."""
    ranks = dist.get_world_size()
    return {"network": chosen.model, "method": chosen.method, "ranks": ranks}


def said(row: dict[str, Any]) -> str:
    """Print a row."""
    if "loss" in row:
        return "{network} {method}, {link}: epoch {seconds:.1f} s".format(**row)
    if "link" in row:
        return (
            "{network} {method} {ranks} ranks, {link}: step {0:.4f} s, compute {1:.4f} s "
            "({2} steps), {sent:.0f} bytes"
        ).format(median(row["steps"]), median(row["compute"]), len(row["steps"]), **row)
    return (
        "{network} {method} seed {seed}: {metric} {scores}, {sent:.4g} bytes, {seconds:.0f} s"
    ).format(**row)


if __name__ == "__main__":
    main()
