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
ROWS, BATCH, EPOCHS = 40_000, 1000, 6


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


def main() -> None:
    """Run one job per number of processes."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    found: list[dict[str, Any]] = []
    for ranks in RANKS:
        launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "row.json"
            environment = os.environ | {OUTPUT: str(output), "SPARCML_THREADS": "1"}
            command = [*launcher, sys.executable, __file__]
            subprocess.run(command, env=environment, check=True)
            row = json.loads(output.read_text())
        first = found[0] if found else row
        same = np.isclose(row["weights"], first["weights"], rtol=1e-5)
        found.append(row | {"wrong": int(not same), "times": row["epoch"] / first["epoch"]})
        print(found[-1], flush=True)
    if chosen.json:
        write_json(chosen.json, describe("", 0), found)


if __name__ == "__main__":
    if OUTPUT in os.environ:
        rank()
    else:
        main()
