"""Time of a step with neighbours on real ranks and an emulated network.

    sparcml run -n 4 --network 100mbit benchmarks/run_decentralized_step.py --json FILE

Each rank of a ring makes steps of D-PSGD, DCD and Choco on a model of 16 M parameters with random
gradients. A step starts on all ranks together, and the slowest rank counts. The processor time is
that of one rank and step: ranks of one machine share its cores, ranks of a cluster do not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # ranks share the cores

import numpy as np

import sparcml
from sparcml import decentralized as dec
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.units import parse_bandwidth

PARAMETERS = 16_000_000
STEPS = {"D-PSGD": 7, "DCD, 4 bits": 10, "Choco, top 1 %": 21}  # the first one warms up
LR = 0.01
SEED = 5


def methods(ranks: int) -> dict[str, dec.Method]:
    """Return the methods on a ring."""
    ring = dec.ring(ranks)
    return {
        "D-PSGD": dec.DPSGD(ring),
        "DCD, 4 bits": dec.DCD(ring, sparcml.QSGD(bits=4)),
        "Choco, top 1 %": dec.Choco(ring, sparcml.TopK(0.01)),
    }


def measure(
    comm: sparcml.Communicator, name: str, method: dec.Method, size: int
) -> dict[str, Any]:
    """Return the times of a method's steps, the slowest rank's of each."""
    rng = np.random.default_rng([SEED, comm.rank])
    x = np.zeros(size, np.float32)
    gradients = [rng.standard_normal(size, np.float32) for _ in range(2)]
    state = method.init(x)
    seconds, cpu, sent = [], [], 0
    for step in range(STEPS[name]):
        comm.barrier()
        before = comm.stats.bytes
        start, start_cpu = time.perf_counter(), time.process_time()
        g = gradients[step % 2]
        x, state = method.step(comm, x, g, state, LR, overwrite_state=True)
        mine = time.perf_counter() - start, time.process_time() - start_cpu
        sent = comm.stats.bytes - before
        slowest = comm.allreduce(np.array(mine), op="max")
        seconds.append(float(slowest[0]))
        cpu.append(float(comm.allreduce(np.array(mine), op="mean")[1]))
    return {
        "method": name,
        "ranks": comm.size,
        "parameters": size,
        "bytes": sent,
        "seconds": seconds[1:],
        "cpu": cpu[1:],
        "distance": method.consensus_distance(comm, x),
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--network", default="100mbit", help="bandwidth of the emulated link"
    )
    parser.add_argument("--parameters", type=int, default=PARAMETERS)
    parser.add_argument("--only", choices=list(STEPS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with sparcml.world() as comm:
        for name, method in methods(comm.size).items():
            if options.only not in (None, name):
                continue
            row = measure(comm, name, method, options.parameters)
            row["wire"] = 8 * row["bytes"] / parse_bandwidth(options.network)
            rows.append(row)
            if comm.rank == 0:
                best, cpu = min(row["seconds"]), min(row["cpu"])
                sys.stdout.write(
                    f"{name}: {best:.3f} s ({best / row['wire']:.2f}x of the wire time), "
                    f"processor {cpu:.3f} s, {row['bytes']:,} bytes; all "
                    f"{[round(s, 3) for s in row['seconds']]}\n"
                )
                sys.stdout.flush()
        if comm.rank == 0 and options.json is not None:
            facts = describe(f"-n {comm.size} --network {options.network}", SEED)
            write_json(options.json, facts, rows)


if __name__ == "__main__":
    main()
