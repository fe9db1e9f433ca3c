"""Strong scaling on emulated links, for claim 22: training steps on 1 to 16 ranks.

    python benchmarks/run_scaling.py --json FILE

It starts `sparcml run -n P --network 100mbit benchmarks/run_scaling.py MODEL` for each model
and number of ranks (docs/network.md has the requirements). Computing is a pause of the time
that the planner assumes: the ranks share the cores of one machine, and represent devices that
do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from claims.scaling_runs import EMULATED, METHODS, MODELS, SCALE, computing, share
from claims.scaling_step import Step

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe

STEPS = 3
RATE = "100mbit"  # a tenth of 1 Gbit/s, as the models are a tenth


def emulated(model: str, ranks: int) -> list[dict[str, Any]]:
    """Return rows of all methods, from ranks with slow links."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        command = [sys.executable, "-m", "sparcml", "run", "-n", str(ranks)]
        command += ["--network", RATE, __file__, model, "--json", str(path)]
        subprocess.run(command, check=True, timeout=300)
        rows = json.loads(path.read_text())
    return [{"kind": "emulated", "model": model, "ranks": ranks, **row} for row in rows]


def measure(comm: sparcml.Communicator, model: str, name: str) -> dict[str, Any]:
    """Return the median step of the slowest rank, after a warm-up step; run on each rank."""
    step = Step(comm, METHODS[name].method, share(model, SCALE))
    step.run(lambda: None)
    pause = computing(model, comm.size)
    times = [step.run(lambda: time.sleep(pause)) for _ in range(STEPS)]
    slowest = np.max(comm.allgather(np.array(times)), axis=0).tolist()
    row = {"method": name, "compute": pause, "step": statistics.median(slowest)}
    return row | {"steps": slowest}


def main() -> None:
    """Start ranks; with the name of a model, be one of them."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("model", nargs="?", help="for the ranks that this starts")
    options.add_argument("--json", type=Path, required=True)
    chosen = options.parse_args()
    if chosen.model is None:
        facts = describe("run_scaling.py", 0)
        rows = [row for m in MODELS for ranks in EMULATED for row in emulated(m, ranks)]
        write_json(chosen.json, facts, rows)
        return
    with sparcml.world() as comm:
        rows = [measure(comm, chosen.model, name) for name in METHODS]
        if comm.rank == 0:
            chosen.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
