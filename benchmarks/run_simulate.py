"""Measure the real time and memory of simulating an allreduce on many ranks.

    python benchmarks/run_simulate.py --json FILE

Streams of a million values, a density of 0.01 % at random indices, links of 1 Gbit/s. Each
case has its own process; the result of every rank is verified.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe

SIZE, STORED = 1_000_000, 100
CASES = (
    (1024, "ssar_recursive_double"),
    (256, "ssar_recursive_double"),
    (256, "ssar_split_allgather"),
    (256, "dsar_split_allgather"),
    (256, "ssar_ring"),
    (256, "auto"),
)


def vector(rank: int) -> sparcml.Stream:
    """Return the vector of a rank: integers, whose sums are exact."""
    rng = np.random.default_rng(rank)
    indices = np.sort(rng.choice(SIZE, STORED, replace=False)).astype(np.uint32)
    return sparcml.Stream(SIZE, indices, rng.integers(1, 9, STORED).astype(np.float32))


def measure(ranks: int, algorithm: str) -> dict[str, object]:
    """Return one row."""
    start, busy = time.perf_counter(), time.process_time()
    sim = sparcml.simulate(
        lambda comm: comm.allreduce(vector(comm.rank), algorithm=algorithm),
        ranks,
        "1gbit",
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    want = np.zeros(SIZE, np.float32)
    for rank in range(ranks):
        x = vector(rank)
        want[x.indices] += x.values
    wrong = sum(not np.array_equal(y.to_dense(), want) for y in sim.results)
    return {
        "ranks": ranks,
        "algorithm": algorithm,
        "messages": sim.messages,
        "simulated": sim.seconds * 1e6,
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak,
        "wrong": wrong,
    }


def main() -> None:
    """Run all cases, one after the other."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows = []
    context = get_context("spawn")
    for case in CASES:
        with ProcessPoolExecutor(1, mp_context=context) as fresh:
            rows.append(fresh.submit(measure, *case).result())
        print({k: round(v, 2) if isinstance(v, float) else v for k, v in rows[-1].items()})
    if chosen.json:
        write_json(chosen.json, describe("", 0), rows)


if __name__ == "__main__":
    main()
