"""Coordinate descent on slow links: sparse and dense allgather.

    sparcml run -n 8 --network 1gbit benchmarks/run_scd.py --json FILE

The paper's experiment, 100 coordinates per rank and round, on URL-like rows. The ranks exchange
changes of the margins of all rows: as sparse streams, or as dense vectors with MPI's allgather.
Both must reach the same objective.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from table2.baselines import Plain
from table2.timed import Summary, Timed

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.linear import SCD, Penalty, SCDState, url_like
from sparcml.network.presets import link_bandwidth

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.linear import Rows

ROWS = 60_000
EPOCHS = 1  # timed, after one that warms up
PENALTY = Penalty(l2=1e-4)


def measure(comm: Communicator, rows: Rows, kind: str, link: float) -> dict[str, Any]:
    """Return medians over epochs, after a warm-up epoch; the same on all ranks."""
    timed = Timed(comm, rows.total, Plain() if kind == "dense" else None)
    seconds: list[float] = []
    rounds: list[Summary] = []
    start = [0.0]

    def watch(_: SCDState) -> None:
        both = np.max(comm.allgather(np.array([start[0], comm.now()])), axis=0)
        seconds.append(float(both[1] - both[0]))
        rounds.append(timed.summary())
        comm.barrier()
        start[0] = comm.now()

    solver = SCD("logistic", PENALTY, epochs=1 + EPOCHS, tol=0.0)
    found = solver.run(cast("Communicator", timed), rows, watch=watch)
    calls = rounds[0].calls
    used = rounds[1:]
    given = statistics.median(each.given for each in used)
    dense = (comm.size - 1) * rows.total * 8
    nbytes = statistics.median(each.nbytes for each in used) / calls
    return {
        "sums": kind,
        "ranks": comm.size,
        "rows": rows.total,
        "features": rows.features,
        "block": solver.block_size,
        "rounds": calls,
        "epochs": EPOCHS,
        "given": given,
        "epoch": statistics.median(seconds[1:]),
        "communicating": statistics.median(each.communicating for each in used),
        "processors": statistics.median(each.processors for each in used),
        "bytes": dense if kind == "dense" else nbytes,
        "bound": calls * (dense if kind == "dense" else nbytes) / link,
        "objective": found.objectives[-1],
    }


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
        for row in found:
            row["wrong"] = int(not np.isclose(one, other, rtol=1e-9))
            if comm.rank == 0:
                print(row, flush=True)
        if comm.rank == 0 and chosen.json:
            facts = describe(f"--link {chosen.link} --rows {chosen.rows}", 0)
            write_json(chosen.json, facts, found)


if __name__ == "__main__":
    main()
