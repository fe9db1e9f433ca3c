"""Time of short collectives over torch.distributed against gloo's own, on loopback.

    python benchmarks/run_torch_latency.py --json FILE

Jobs of 2 and of 4 ranks. Each also measures what ranks cost that wait for another: the share
of a processor that one takes after the first second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from run_latency import ENTRIES, SIZE, phases, timed

if TYPE_CHECKING:
    from collections.abc import Callable

OUTPUT = "TORCH_LATENCY_OUTPUT"
IDLE_SECONDS = 4.0
Row = dict[str, Any]


class World:
    """What `timed` uses of an MPI communicator, over torch.distributed."""

    def __init__(self) -> None:
        from torch import distributed as dist

        self._dist = dist

    def Barrier(self) -> None:  # noqa: N802
        """Wait for all ranks."""
        self._dist.barrier()

    def allreduce(self, number: float) -> float:
        """Return the sum of a number."""
        import torch

        tensor = torch.tensor([number], dtype=torch.float64)
        self._dist.all_reduce(tensor)
        return float(tensor[0])


def idle_share(comm: Any, world: World) -> float:
    """Return the mean share of a processor of the ranks that wait for the last one."""
    used: list[float] = []
    timer = threading.Timer(1.0, lambda: used.append(time.process_time()))
    world.Barrier()
    if comm.rank == comm.size - 1:
        time.sleep(1.0 + IDLE_SECONDS)
    else:
        timer.start()
    comm.barrier()
    mine = (time.process_time() - used[0]) / IDLE_SECONDS if used else 0.0
    others: int = comm.size - 1
    return world.allreduce(mine) / others


def rank() -> None:
    """Measure as one rank of a job."""
    import torch
    from torch import distributed as dist

    import sparcml

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    world = World()
    with sparcml.world() as comm:

        def stream(nnz: int) -> Any:
            rng = np.random.default_rng((comm.rank, nnz))
            indices = np.sort(rng.choice(SIZE, nnz, replace=False)).astype(np.uint32)
            return sparcml.Stream(SIZE, indices, rng.standard_normal(nnz, np.float32))

        x = stream(50)
        expected = torch.from_numpy(x.to_dense())
        dist.all_reduce(expected)
        wrong = not np.allclose(comm.allreduce(x).to_dense(), expected, atol=1e-5)
        long, short = torch.zeros(1000), torch.zeros(2)
        cases: dict[str, Callable[[], object]] = {
            "gloo's allreduce, 4 kB": partial(dist.all_reduce, long),
            "gloo's allreduce, 8 bytes": partial(dist.all_reduce, short),
            "gloo's barrier": dist.barrier,
            "barrier": comm.barrier,
        }
        for nnz in ENTRIES:
            cases[f"allreduce, {nnz} of 1 M"] = partial(comm.allreduce, stream(nnz))
        rows = timed(cases, 1000, world)
        for row in rows:
            if row["case"].startswith("allreduce"):
                row["phases"] = phases(comm, cases[row["case"]], 300)
        idle = idle_share(comm, world)
        if comm.rank == 0:
            about = {"ranks": comm.size, "wrong": wrong, "idle": idle}
            Path(os.environ[OUTPUT]).write_text(json.dumps([about | row for row in rows]))
    dist.destroy_process_group()


def run(ranks: int) -> list[Row]:
    """Run one job and return its rows."""
    sparcml = str(Path(sys.executable).with_name("sparcml"))
    command = [sparcml, "run", "--engine", "torch", "-n", str(ranks), __file__]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.json"
        subprocess.run(command, env=os.environ | {OUTPUT: str(output)}, check=True)
        rows: list[Row] = json.loads(output.read_text())
    return rows


def main() -> None:
    """Run all jobs."""
    from sparcml.bench.results import write_json
    from sparcml.environment import describe, package_version

    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows = []
    for ranks in (2, 4):
        found = run(ranks)
        rows += found
        for row in found:
            print(
                f"{ranks} {row['case']:26} {row['seconds'] * 1e6:8.1f} us"
                f"  cpu {row['cpu'] * 1e6:8.1f} us  idle {100 * row['idle']:.1f} %",
                flush=True,
            )
    if chosen.json:
        write_json(chosen.json, describe("", 0, torch=package_version("torch") or ""), rows)


if __name__ == "__main__":
    if OUTPUT in os.environ:
        rank()
    else:
        main()
