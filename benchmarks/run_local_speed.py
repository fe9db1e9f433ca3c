r"""Measure the speed of local training on slow links, relative to computation alone.

    sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_local_speed.py \
        --network 100mbit --json benchmarks/results/DATE-local-speed.json

Each form trains the wide LSTM of examples/torch (20 M parameters); steps without any exchange are
measured before and after.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist
from training.roster import WIDE
from training.tasks import made

from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.torch import DiLoCo, SparseLoCo

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Task

EVERY = 30
FORMS: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    # The form, its settings, and the number of rounds.
    "DiLoCo, delay 14": (DiLoCo, {"delay": 14, "mix": 0.5}, 2),
    "DiLoCo": (DiLoCo, {}, 1),
    "SparseLoCo": (SparseLoCo, {}, 1),
}


def main() -> None:
    """Run on each rank; the first one saves the rows."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--network", default="none", help="link bandwidth")
    options.add_argument("--steps", type=int, default=5, help="steps without exchange")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    task = made(WIDE)
    rows = [measure(task, name, chosen.steps) for name in FORMS]
    if dist.get_rank() == 0:
        for row in rows:
            row["link"], row["ranks"] = chosen.network, dist.get_world_size()
            print(
                f"{row['form']}: {row['seconds'] / row['steps']:.3f} s per step, compute "
                f"{row['compute']:.3f} s: {row['speed']:.1%}; exposed {row['exposed']:.2f} s; "
                f"{row['sent'] / 1e6:.2f} MB",
                flush=True,
            )
        if chosen.json is not None:
            facts = describe("torch", dist.get_world_size(), torch=torch.__version__)
            write_json(chosen.json, facts, rows)
    dist.destroy_process_group()


def measure(task: Task, name: str, steps: int) -> dict[str, Any]:
    """Return the seconds of the rounds of a form, and those of steps without exchange."""
    build, settings, rounds = FORMS[name]
    torch.manual_seed(0)
    model = task.model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    training = build(model, optimizer, sync_every=EVERY, **settings)
    compute = [_steps(task, model, optimizer, steps)]  # these are part of the first round
    done = training.steps
    before = training.stats
    seconds = _steps(task, model, optimizer, rounds * EVERY)
    spent = training.stats.since(before)
    training.close()
    compute.append(_steps(task, model, optimizer, steps))
    each = sum(compute) / (len(compute) * steps)
    assert done == steps, "steps of the first round"
    return {
        "form": name,
        "settings": str(training.settings),
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": rounds * EVERY,
        "seconds": seconds,
        "compute": each,
        "speed": rounds * EVERY * each / seconds,
        "exposed": spent.exposed,
        "sent": spent.bytes,
    }


def _steps(task: Task, model: Any, optimizer: Any, count: int) -> float:
    """Make steps on random rows and return the seconds of the slowest rank."""
    draw = torch.Generator().manual_seed(dist.get_rank())
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        rows = torch.randint(task.rows, (task.batch_size,), generator=draw)
        optimizer.zero_grad()
        task.loss(model, rows).backward()
        optimizer.step()
    seconds = torch.tensor(time.perf_counter() - start)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return float(seconds)


if __name__ == "__main__":
    main()
