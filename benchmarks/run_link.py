"""How much of an emulated link an allreduce of 16 M values uses.

    sparcml run -n 8 --network 100mbit benchmarks/run_link.py --link 100mbit --json FILE

Calls repeat, after two that are not counted; a barrier, which is not timed, precedes each. The
slowest rank counts. Values are integers, and each result is compared with that of a dense sum.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.network.presets import link_bandwidth

if TYPE_CHECKING:
    from sparcml import Communicator, Stream

SIZE = 1 << 24
CASES = ((0.01, None), (0.01, 8), (0.1, None), (0.1, 8))  # density, bits per value


def vector(rank: int, density: float) -> Stream:
    """Return random entries of a rank, with small integers as values."""
    rng = np.random.default_rng([rank, int(1e6 * density)])
    indices = np.flatnonzero(rng.random(SIZE, np.float32) < density).astype(np.uint32)
    return sparcml.Stream(
        SIZE, indices, rng.integers(1, 9, indices.size).astype(np.float32)
    )


def measure(
    comm: Communicator, density: float, bits: int | None, runs: int, link: float
) -> dict[str, Any]:
    """Return the row of one case, the same on all ranks."""
    x = vector(comm.rank, density)
    quantize = None if bits is None else sparcml.QSGD(bits=bits)
    times, total = [], None
    for _ in range(2 + runs):
        comm.barrier()
        comm.stats.reset()
        start = comm.now()
        total = comm.allreduce(x, quantize=quantize)
        seconds = comm.now() - start
        sent = comm.stats.bytes
        times.append(float(comm.allreduce(seconds, "max")))
    assert total is not None
    expected = comm.allreduce(x.to_dense(), algorithm="native")
    bound = 0.0 if bits is None else 8 * comm.size / (2 ** (bits - 1) - 1) * 2
    wrong = np.count_nonzero(np.abs(total.to_dense() - expected) > bound)
    most = int(comm.allreduce(sent, "max"))
    return {
        "link": link,
        "ranks": comm.size,
        "density": density,
        "bits": bits,
        "runs": runs,
        "bytes": most,
        "seconds": median(times[2:]),
        "of_link": most / link / median(times[2:]),
        "wrong": int(comm.allreduce(int(wrong), "max")),
    }


def main() -> None:
    """Measure all cases."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", required=True, help="bandwidth, such as 100mbit")
    options.add_argument("--runs", type=int, default=7)
    chosen = options.parse_args()
    rows = []
    with sparcml.world() as comm:
        link = link_bandwidth(chosen.link) / 8
        for density, bits in CASES:
            rows.append(measure(comm, density, bits, chosen.runs, link))
            if comm.rank == 0:
                print(rows[-1], flush=True)
        if comm.rank == 0 and chosen.json:
            write_json(
                chosen.json, describe(f"--link {chosen.link} --runs {chosen.runs}", 0), rows
            )


if __name__ == "__main__":
    main()
