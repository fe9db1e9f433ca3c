"""Epochs of SGD on URL-like rows with 1, 2 and 4 processes of one machine.

    python benchmarks/run_linear_ranks.py --json FILE

Logistic regression in batches of 1,000 rows over all processes, the same rows and steps for
any number of them, one thread each. An epoch takes as long as its slowest process; the first
is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.linear import SGD, Constant, url_like

OUTPUT = "LINEAR_RANKS_OUTPUT"
RANKS = (1, 2, 4)
ROWS, BATCH, EPOCHS = 40_000, 1000, 10
JOBS = 5  # per number of processes, in turns


def rank() -> None:
    """Train as one process of a job; the first one writes the row."""
    with sparcml.world() as comm:
        rows = url_like(ROWS, comm=comm)
        sgd = SGD(learning_rate=Constant(0.1), batch_size=BATCH)
        state = sgd.init(rows)
        times, communicating = [], []
        for _ in range(1 + EPOCHS):
            comm.barrier()
            comm.stats.reset()
            start = comm.now()
            sgd.run_epoch(comm, rows, state)
            times.append(float(comm.allreduce(comm.now() - start, "max")))
            seconds = sum(p.measured for p in comm.stats.allreduces.values())
            communicating.append(float(comm.allreduce(seconds, "max")))
        if comm.rank == 0:
            row = {
                "ranks": comm.size,
                "rows": ROWS,
                "batch": BATCH,
                "epoch": median(times[1:]),
                "communicating": median(communicating[1:]),
                "weights": float(np.abs(state.weights).sum()),
            }
            Path(os.environ[OUTPUT]).write_text(json.dumps(row))


def job(ranks: int) -> dict[str, Any]:
    """Return the row of one job."""
    launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "row.json"
        environment = os.environ | {OUTPUT: str(output), "SPARCML_THREADS": "1"}
        command = [*launcher, sys.executable, __file__]
        subprocess.run(command, env=environment, check=True)
        found: dict[str, Any] = json.loads(output.read_text())
    return found


def main() -> None:
    """Run the jobs in turns, and report the median one of each number of processes."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows: dict[int, list[dict[str, Any]]] = {ranks: [] for ranks in RANKS}
    for _ in range(JOBS):
        for ranks, of_ranks in rows.items():
            of_ranks.append(job(ranks))
    found: list[dict[str, Any]] = []
    first = rows[1][0]
    for of_ranks in rows.values():
        row = sorted(of_ranks, key=itemgetter("epoch"))[JOBS // 2]
        same = all(np.isclose(r["weights"], first["weights"], rtol=1e-5) for r in of_ranks)
        times = row["epoch"] / (found or [row])[0]["epoch"]
        found.append(row | {"wrong": int(not same), "times": times})
        print(found[-1], flush=True)
    if chosen.json:
        write_json(chosen.json, describe("", 0), found)


if __name__ == "__main__":
    if OUTPUT in os.environ:
        rank()
    else:
        main()
