r"""Measure the speed of local training on slow links, relative to computation alone.

    sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_local_speed.py \
        --network 100mbit --json benchmarks/results/DATE-local-speed.json

Each form trains the wide LSTM of examples/torch (20 M parameters); steps without any exchange are
measured before and after. A step computes two rows and waits until it has taken 1.5 s, as for a
device that leaves the processor to the exchange: the ranks of one machine share its cores, which
workers do not. It takes about four minutes.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from training.roster import WIDE
from training.tasks import made

from sparcml.bench.results import write_json
from sparcml.costs import ring_nbytes
from sparcml.environment import describe
from sparcml.torch import DiLoCo, SparseLoCo

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Task

EVERY = 30
DDP = "dense DDP"
FORMS: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    # The form, its settings, and the number of rounds.
    "Streaming DiLoCo, delay 20": (DiLoCo, {"delay": 20, "mix": 0.5}, 1),
    "DiLoCo": (DiLoCo, {}, 1),
    "SparseLoCo": (SparseLoCo, {}, 1),
}


def main() -> None:
    """Run on each rank; the first one saves the rows."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--network", default="none", help="link bandwidth")
    options.add_argument("--steps", type=int, default=4, help="steps without exchange")
    options.add_argument("--rows", type=int, default=2, help="rows per step of each rank")
    options.add_argument("--step-time", type=float, default=1.5, help="seconds of a step")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    task = replace(made(WIDE), batch_size=chosen.rows)
    pace = chosen.step_time
    facts = describe("torch", dist.get_world_size(), torch=torch.__version__)
    rows: list[dict[str, Any]] = []
    for name in (*list(FORMS)[:1], DDP, *list(FORMS)[1:]):
        if name == DDP:
            row = measure_ddp(task, rows[0]["compute"], pace)
        else:
            row = measure(task, name, chosen.steps, pace)
        row |= {"link": chosen.network, "ranks": dist.get_world_size(), "step_time": pace}
        rows.append(row)
        if dist.get_rank() == 0:
            print(
                f"{row['form']}: {row['seconds'] / row['steps']:.3f} s per step, compute "
                f"{row['compute']:.3f} s: {row['speed']:.1%}; exposed {row['exposed']:.2f} s; "
                f"{row['sent'] / 1e6:.2f} MB",
                flush=True,
            )
            if chosen.json is not None:
                write_json(chosen.json, facts, rows)  # what is measured, if it is stopped
    dist.destroy_process_group()


def measure(task: Task, name: str, steps: int, pace: float) -> dict[str, Any]:
    """Return the seconds of the rounds of a form, and those of steps without exchange."""
    build, settings, rounds = FORMS[name]
    torch.manual_seed(0)
    model = task.model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    training = build(model, optimizer, sync_every=EVERY, **settings)
    compute = [
        _steps(task, model, optimizer, steps, pace)
    ]  # these are part of the first round
    done = training.steps
    before = training.stats
    seconds = _steps(task, model, optimizer, rounds * EVERY, pace)
    spent = training.stats.since(before)
    training.close()
    compute.append(_steps(task, model, optimizer, steps, pace))
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


def measure_ddp(task: Task, compute: float, pace: float, steps: int = 2) -> dict[str, Any]:
    """Return the seconds of steps of dense DDP."""
    torch.manual_seed(0)
    model = DistributedDataParallel(task.model())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    _steps(task, model, optimizer, 1, pace)  # which allocates buckets
    seconds = _steps(task, model, optimizer, steps, pace)
    size = sum(p.numel() for p in model.parameters())
    return {
        "form": DDP,
        "settings": "",
        "parameters": size,
        "steps": steps,
        "seconds": seconds,
        "compute": compute,
        "speed": steps * compute / seconds,
        "exposed": seconds - steps * compute,
        "sent": steps * ring_nbytes(dist.get_world_size(), 4 * size),
    }


def _steps(task: Task, model: Any, optimizer: Any, count: int, pace: float) -> float:
    """Make steps on random rows and return the seconds of the slowest rank.

    The gradient of each is there after `pace` seconds, if it does not take longer.
    """
    draw = torch.Generator().manual_seed(dist.get_rank())
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        rows = torch.randint(task.rows, (task.batch_size,), generator=draw)
        ready = time.perf_counter() + pace
        optimizer.zero_grad()
        loss = task.loss(model, rows)
        if isinstance(model, DistributedDataParallel):
            time.sleep(
                max(0.0, ready - time.perf_counter())
            )  # it sends in the backward pass
        loss.backward()
        time.sleep(max(0.0, ready - time.perf_counter()))
        optimizer.step()
    seconds = torch.tensor(time.perf_counter() - start)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return float(seconds)


if __name__ == "__main__":
    main()
