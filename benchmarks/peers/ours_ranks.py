"""Ours in four processes over MPI: steps on some hundred rows, which ranks divide, or local steps.

`run` starts the processes; this file is also the program that they run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

import sparcml
from sparcml.linear import SGD, Constant, ExponentialDecay, Rows, read_svmlight

if __package__ in (None, ""):  # started as a program
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peers.base import Curve, Data, Found, Judge, timed
from peers.ours import SMALL, brief, follow

NAME = "sparcml SGD, 4 processes"
THREADS = "4 processes"
HELD = "CSR in memory, partitioned"
RANKS = 4
PASSES = 8

GRID = {
    "spam": [
        SGD(adaptive=SMALL, learning_rate=Constant(0.5), batch_size=16),
        SGD(adaptive=SMALL, learning_rate=Constant(0.5), batch_size=64),
        SGD(adaptive=SMALL, learning_rate=Constant(0.3), batch_size=64),
    ],
    "URL-like": [
        SGD(learning_rate=ExponentialDecay(6.0, 0.7), batch_size=256),
        SGD(learning_rate=ExponentialDecay(8.0, 0.7), batch_size=1024),
        # Each rank makes steps on single rows of its own.
        SGD(learning_rate=ExponentialDecay(0.03, 0.6), local_steps=25_000),
        SGD(learning_rate=ExponentialDecay(0.03, 0.6), local_steps=50_000),
    ],
}


def run(data: Data) -> Found:
    """Start the ranks with `sparcml run`."""
    out = data.folder / "ranks.json"
    told = [data.name, str(data.folder), str(data.features), str(int(data.quick)), str(out)]
    command = [sys.executable, "-m", "sparcml", "run", "-n", str(RANKS), __file__, *told]
    subprocess.run(command, check=True)
    kept = json.loads(out.read_text())
    curves = [Curve(**curve) for curve in kept.pop("curves")]
    return Found(**kept, curves=curves)


def on_ranks(comm: sparcml.Communicator, data: Data) -> Found:
    """Run all settings; an epoch takes the time of the slowest rank."""

    def read() -> Rows:
        return read_svmlight(data.train, comm, features=data.features, zero_based=False)

    comm.barrier()
    reading, rows = timed(read)
    reading = float(np.max(comm.allgather(np.array([reading]))))
    found, judge = Found(sparcml.__version__, reading, runs=1), Judge(data)
    for solver in data.some(GRID[data.name]):
        curve = Curve(brief(solver))
        follow(solver, comm, rows, judge, curve, 2 if data.quick else PASSES)
        found.curves.append(curve)
    return found


def main() -> None:
    """Run on each rank."""
    name, folder, features, quick, out = sys.argv[1:]
    with sparcml.world() as comm:
        data = Data(name, Path(folder), int(features), quick == "1")
        found = on_ranks(comm, data)
        if comm.rank == 0:
            Path(out).write_text(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
