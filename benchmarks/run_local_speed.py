r"""Measure the speed of local training on slow links, relative to computation alone.

    sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_local_speed.py \
        --network 100mbit --form diloco --json benchmarks/results/DATE-local-speed.json

Each form trains the wide LSTM of examples/torch (20 M parameters); steps without any exchange are
measured before and after. A step computes the gradient of two words and waits until it has taken
1.2 s, as for a device that leaves the processor to the exchange: the ranks of one machine share its
cores, which workers do not. With 1.2 s, dense DDP keeps a tenth of its speed at 100 Mbit/s. A round
takes about a minute; rows of other forms and networks stay in the file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from training.roster import WIDE
from training.tasks import made

from sparcml.bench.results import write_json
from sparcml.costs import ring_nbytes
from sparcml.environment import describe
from sparcml.torch import DiLoCo, SparseLoCo

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 30
DDP = "dense DDP"
DDP_STEPS = 2
WARM_UP = 2  # rounds, which are not measured
FORMS: dict[str, tuple[str, Callable[..., Any] | None, dict[str, Any]]] = {
    # Its title, its class and its settings, by the name on the command line.
    "ddp": (DDP, None, {}),
    "diloco": ("DiLoCo", DiLoCo, {}),
    "stream-1-14": (
        "Streaming DiLoCo, delay 14",
        DiLoCo,
        {"delay": 14, "mix": 0.5},
    ),
    "stream-3-5": (
        "Streaming DiLoCo, 3 fragments, delay 5",
        DiLoCo,
        {"fragments": 3, "delay": 5, "mix": 0.5},
    ),
    "stream-3-2": (
        "Streaming DiLoCo, 3 fragments, delay 2",
        DiLoCo,
        {"fragments": 3, "delay": 2, "mix": 0.5},
    ),
    "sparseloco": ("SparseLoCo", SparseLoCo, {}),
}


def main() -> None:
    """Run on each rank; the first one saves the rows."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--network", default="none", help="link bandwidth")
    options.add_argument("--form", nargs="+", choices=list(FORMS), default=list(FORMS))
    options.add_argument("--steps", type=int, default=4, help="steps without exchange")
    options.add_argument("--step-time", type=float, default=1.2, help="seconds of a step")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    facts = describe("torch", ranks, torch=torch.__version__)
    for name in chosen.form:
        row = measure(name, chosen.steps, chosen.rounds, chosen.step_time)
        row |= {"link": chosen.network, "ranks": ranks, "step_time": chosen.step_time}
        if dist.get_rank() == 0:
            print(
                f"{row['form']}: {row['seconds'] / row['steps']:.3f} s per step, compute "
                f"{row['compute']:.3f} s: {row['speed']:.1%}; exposed {row['exposed']:.2f} s; "
                f"{row['sent'] / 1e6:.2f} MB",
                flush=True,
            )
            if chosen.json is not None:
                save(chosen.json, facts, row)
    dist.destroy_process_group()


def save(path: Path, facts: dict[str, str], row: dict[str, Any]) -> None:
    """Write a row to the file, in place of an earlier one of the same form and network."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = [r for r in rows if (r["form"], r["link"]) != (row["form"], row["link"])]
    write_json(path, facts, sorted([*kept, row], key=_place))


def _place(row: dict[str, Any]) -> tuple[str, int]:
    titles = [title for title, _, _ in FORMS.values()]
    return row["link"], titles.index(row["form"])


def measure(name: str, steps: int, rounds: int, pace: float) -> dict[str, Any]:
    """Return the seconds of the rounds of a form, and those of steps without exchange."""
    title, build, settings = FORMS[name]
    torch.manual_seed(0)
    model = made(WIDE).model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    _steps(model, optimizer, 2, 0.0)
    compute = [_steps(model, optimizer, steps, pace)]
    if build is None:
        count, spent = DDP_STEPS, None
        wrapped = DistributedDataParallel(model)
        _steps(wrapped, optimizer, 1, pace)  # which allocates buckets
        seconds = _steps(wrapped, optimizer, count, pace)
    else:
        training = build(model, optimizer, sync_every=EVERY, **settings)
        count = rounds * EVERY
        # Connections are opened, and memory is used for the first time.
        _steps(model, optimizer, WARM_UP * EVERY, 0.0)
        before = training.stats
        seconds = _steps(model, optimizer, count, pace)
        spent = training.stats.since(before)
        assert spent.exchanges == rounds * training.settings.parts, "all of the rounds"
        training.close()
    compute.append(_steps(model, optimizer, steps, pace))
    each = sum(compute) / (len(compute) * steps)
    size = sum(p.numel() for p in model.parameters())
    ring = count * ring_nbytes(dist.get_world_size(), 4 * size)
    return {
        "form": title,
        "settings": "" if build is None else str(training.settings),
        "parameters": size,
        "steps": count,
        "seconds": seconds,
        "compute": each,
        "speed": count * each / seconds,
        "exposed": seconds - count * each if spent is None else spent.exposed,
        "sent": ring if spent is None else spent.bytes,
    }


def _steps(model: Any, optimizer: Any, count: int, pace: float) -> float:
    """Make steps on random words and return the seconds of the slowest rank.

    The gradient of each is there after `pace` seconds, if it does not take longer.
    """
    draw = torch.Generator().manual_seed(dist.get_rank())
    tagger = model.module if isinstance(model, DistributedDataParallel) else model
    classes = tagger.embed.num_embeddings, tagger.out.out_features
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        ready = time.perf_counter() + pace
        words, slots = (torch.randint(n, (1, 2), generator=draw) for n in classes)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(words)[0], slots[0])
        if isinstance(model, DistributedDataParallel):  # it sends in the backward pass
            time.sleep(max(0.0, ready - time.perf_counter()))
        loss.backward()
        time.sleep(max(0.0, ready - time.perf_counter()))
        optimizer.step()
    seconds = torch.tensor(time.perf_counter() - start)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return float(seconds)


if __name__ == "__main__":
    main()
