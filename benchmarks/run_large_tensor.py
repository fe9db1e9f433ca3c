"""Measure a DDP step of one large tensor: time, and peak memory, of each method.

    python benchmarks/run_large_tensor.py --json FILE [--methods "plain DDP,dgc"] [--steps 6]

One linear layer with 50 M parameters, 2 ranks on loopback. Each method runs in new processes,
because memory that was used once counts in the peak of a process. A step has a forward and a
backward pass of 4 rows and an update by SGD; times are medians of the slowest rank.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from sparcml.bench.results import write_json
from sparcml.environment import describe, package_version

RANKS = 2
ROWS, COLUMNS = 5_000, 10_000
METHODS = {
    "plain DDP": "None",
    "topk": "sparcml.Compressed(sparcml.TopK(0.001))",
    "qsgd": "sparcml.Compressed(quantize=sparcml.QSGD(bits=4), error_feedback=False)",
    "qsgd with feedback": "sparcml.Compressed(quantize=sparcml.QSGD(bits=4))",
    "dgc": "sparcml.DGC(ratio=0.001)",
    "powersgd": "sparcml.PowerSGD(rank=4)",
}


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def train(text: str, steps: int, file: Path) -> None:
    """Run one rank: some steps with a method."""
    import torch
    import torch.distributed as dist

    import sparcml
    import sparcml.torch

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = torch.nn.Linear(COLUMNS, ROWS, bias=False)
    model = torch.nn.parallel.DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    method = eval(text, {"sparcml": sparcml})  # one of METHODS
    if method is not None:
        handle = sparcml.torch.compress(model, method)
    x = torch.randn(4, COLUMNS, generator=torch.Generator().manual_seed(rank))
    times, processor = [], []
    for _ in range(steps):
        dist.barrier()
        start, begun = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        dist.barrier()
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - begun)
    found: list[Any] = [None] * RANKS
    dist.all_gather_object(found, (median(times[1:]), median(processor[1:]), peak()))
    if rank == 0:
        seconds, used, most = (max(part) for part in zip(*found, strict=True))
        file.write_text(json.dumps({"seconds": seconds, "processor": used, "peak": most}))
    if method is not None:
        handle.close()
    dist.destroy_process_group()


def measure(name: str, steps: int) -> dict[str, Any]:
    """Start the ranks of one method and return its row."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "row.json")
        command = [
            sys.executable,
            "-m",
            "sparcml",
            "run",
            "--engine",
            "torch",
            "-n",
            str(RANKS),
        ]
        arguments = ["--rank", METHODS[name], "--steps", str(steps), "--json", str(file)]
        subprocess.run([*command, __file__, *arguments], check=True)
        row: dict[str, Any] = json.loads(file.read_text())
    return {"method": name, "settings": METHODS[name].replace("sparcml.", ""), **row}


def main() -> None:
    """Measure all methods in turns, or be one rank."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--methods", default=",".join(METHODS))
    options.add_argument("--steps", type=int, default=6)
    options.add_argument("--rank", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.rank:
        train(chosen.rank, chosen.steps, chosen.json)
        return
    names = chosen.methods.split(",")
    rows = [measure(name, chosen.steps) for name in names]
    first = rows[0]
    for row in rows:
        row["time_ratio"] = row["seconds"] / first["seconds"]
        row["peak_ratio"] = row["peak"] / first["peak"]
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})
    if chosen.json:
        facts = describe(f"--steps {chosen.steps}", 0, torch=package_version("torch") or "")
        write_json(chosen.json, facts, rows)


if __name__ == "__main__":
    main()
