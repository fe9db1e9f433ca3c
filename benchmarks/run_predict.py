"""Does the model know how long a sum takes? Predicted against measured, in one job.

Start it on an emulated network (see docs/network.md):

    sparcml run -n 8 --network 1gbit benchmarks/run_predict.py --json FILE

The ranks first measure their network, as `sparcml probe` does. Then every algorithm sums
vectors of the sizes and densities below, and so does `auto`; of each, the slowest rank's
median counts. Sums are checked on exact data in the same runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import sparcml
from sparcml.cli.bench.common import environment, quantile, write_json
from sparcml.cli.bench.vectors import Problem, different
from sparcml.collectives import ALLREDUCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (1 << 20, 1 << 24)
DENSITIES = (0.001, 0.01, 0.1)
BUDGET = 1.0  # seconds of a row's runs
FEWEST, MOST = 3, 15
LONG = 2.0  # seconds; of a sum that takes longer, one run counts


def times(
    comm: sparcml.Communicator, x: sparcml.Stream, name: str, want: NDArray[np.float32]
) -> list[float]:
    """Seconds of the slowest rank, run by run; the first is not counted."""
    result, first = _timed(comm, x, name)
    lossy = name in ALLREDUCES and ALLREDUCES[name].lossy
    assert lossy or not different(result.to_dense(), want), name
    slowest = float(comm.allreduce(np.array([first]), "max", "recursive_double")[0])
    often = 1 if slowest > LONG else int(min(max(BUDGET / slowest, FEWEST), MOST))
    taken = np.array([_timed(comm, x, name)[1] for _ in range(often)])
    return list(map(float, comm.allreduce(taken, "max", "recursive_double")))


def _timed(
    comm: sparcml.Communicator, x: sparcml.Stream, name: str
) -> tuple[sparcml.Stream, float]:
    comm.barrier()
    start = comm.now()
    result = comm.allreduce(x, algorithm=name)
    return result, comm.now() - start


def rows(comm: sparcml.Communicator, size: int, density: float) -> list[dict[str, object]]:
    """Every algorithm on one kind of vector."""
    problem = Problem(size, density)
    x, want = problem.vector(comm.rank), problem.total(comm.size)
    explained = comm.explain(x)
    predicted = {e.algorithm: e.seconds for e in explained.estimates}
    predicted["auto"] = predicted[explained.choice]
    found = []
    for name, seconds in predicted.items():
        taken = times(comm, x, name, want)
        found.append(
            {
                "size": size,
                "density": 100 * density,
                "algorithm": name,
                "chosen": explained.choice if name == "auto" else None,
                "predicted": 1e6 * seconds,
                "p25": quantile(taken, 0.25),
                "p50": quantile(taken, 0.5),
                "p75": quantile(taken, 0.75),
                "runs": len(taken),
                "wrong": 0,
            }
        )
        if comm.rank == 0:
            print(*(f"{v:.4g}" if isinstance(v, float) else v for v in found[-1].values()))
    return found


def main() -> None:
    """On each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", default="", help="What the network is, for the report.")
    chosen = options.parse_args()
    with sparcml.world() as comm:
        comm.recalibrate()
        found = [r for n in SIZES for d in DENSITIES for r in rows(comm, n, d)]
        if comm.rank == 0 and chosen.json:
            facts = environment(f"--link {chosen.link}", 1) | {"link": chosen.link}
            write_json(chosen.json, facts, found)


if __name__ == "__main__":
    main()
