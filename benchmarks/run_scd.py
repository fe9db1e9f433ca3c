"""Coordinate descent on slow links: sparse and dense allgather.

    sparcml run -n 8 --network 1gbit benchmarks/run_scd.py --json FILE

The paper's experiment, 100 coordinates per rank and round, on URL-like rows. The ranks exchange
changes of the margins of all rows: as sparse streams, or as dense vectors with MPI's allgather.
Both must reach the same objective.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from table2.baselines import Plain
from table2.timed import Timed

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.linear import SCD, Penalty, SCDState, url_like
from sparcml.linear.data.partition import partition_columns
from sparcml.network.presets import link_bandwidth

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.linear import Rows

ROWS = 60_000
EPOCHS = {"sparse": 3, "dense": 1}  # timed, after one that warms up
PENALTY = Penalty(l2=1e-4)


def measure(comm: Communicator, rows: Rows, kind: str, link: float) -> dict[str, Any]:
    """Return medians over epochs, after a warm-up epoch; the same on all ranks.

    Sparse rounds run in compiled calls, whose messages `comm.stats` has counted and timed; of
    dense ones a communicator around it records the times.
    """
    timed = Timed(comm, rows.total, Plain()) if kind == "dense" else None
    epochs: list[list[float]] = []
    given: list[float] = []
    start = [0.0, 0.0]

    def watch(_: SCDState) -> None:
        now = [comm.now(), time.process_time()]
        every = np.array(comm.allgather(np.array([*start, *now])))
        seconds = every[:, 2].max() - every[:, 0].max()
        used = (every[:, 3] - every[:, 1]).sum() / min(os.cpu_count() or 1, comm.size)
        if timed is None:
            phases = sum(comm.stats.seconds.values())
            communicating = float(np.mean(comm.allgather(phases)))
            sent = max(comm.allgather(float(comm.stats.bytes)))
        else:
            summary = timed.summary()
            communicating, sent = summary.communicating, 0.0
            given.append(summary.given)
        epochs.append([seconds, communicating, used, sent])
        comm.stats.reset()
        comm.barrier()
        start[:] = comm.now(), time.process_time()

    solver = SCD("logistic", PENALTY, epochs=1 + EPOCHS[kind], tol=0.0)
    found = solver.run(cast("Communicator", timed or comm), rows, watch=watch)
    seconds, communicating, used, sent = np.median(epochs[1:], axis=0)
    rounds = found_rounds(comm, rows, solver)
    nbytes = float((comm.size - 1) * rows.total * 8 if kind == "dense" else sent / rounds)
    return {
        "sums": kind,
        "ranks": comm.size,
        "rows": rows.total,
        "features": rows.features,
        "block": solver.block_size,
        "rounds": rounds,
        "epochs": EPOCHS[kind],
        "given": given[-1] if given else None,
        "epoch": float(seconds),
        "round": float(seconds) / rounds,
        "communicating": float(communicating),
        "processors": float(used),
        "bytes": nbytes,
        "bound": rounds * nbytes / link,
        "objective": found.objectives[2],  # after as many epochs
    }


def found_rounds(comm: Communicator, rows: Rows, solver: SCD) -> int:
    """Return the rounds of an epoch."""
    columns = np.diff(partition_columns(comm, rows).columns.indptr)
    most = max(comm.allgather(float(np.count_nonzero(columns))))
    return -(-int(most) // solver.block_size)


def main() -> None:
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", default="1gbit", help="link bandwidth")
    options.add_argument("--rows", type=int, default=ROWS)
    chosen = options.parse_args()
    with sparcml.world() as comm:
        rows, link = url_like(chosen.rows, comm=comm), link_bandwidth(chosen.link) / 8
        found = [measure(comm, rows, kind, link) for kind in ("sparse", "dense")]
        one, other = (row["objective"] for row in found)
        found[0]["given"] = found[1]["given"]  # the same steps
        for row in found:
            row["wrong"] = int(not np.isclose(one, other, rtol=1e-9))
            if comm.rank == 0:
                print(row, flush=True)
        if comm.rank == 0 and chosen.json:
            facts = describe(f"--link {chosen.link} --rows {chosen.rows}", 0)
            write_json(chosen.json, facts, found)


if __name__ == "__main__":
    main()
