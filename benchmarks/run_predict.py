"""Compare predicted with measured times of allreduces, in one job.

Start it on an emulated network (see docs/network.md):

    sparcml run -n 8 --network 1gbit benchmarks/run_predict.py --json FILE

The ranks first measure their network, as `sparcml probe` does. Then every algorithm reduces
vectors of the sizes and densities below, and so does `auto`, in several rounds; the median of
the slowest rank counts. Results are verified on exact data in the same runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from harness import plugins  # noqa: F401  # registers Ok-Topk

import sparcml
from sparcml.bench.results import quantile, write_json
from sparcml.bench.vectors import BenchCase, different
from sparcml.collectives import ALLREDUCES
from sparcml.environment import describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

SIZES = (1 << 20, 1 << 24)
DENSITIES = (0.001, 0.01, 0.1)
BUDGET = 0.3  # seconds of a row's runs in one pass
FEWEST, MOST = 1, 5
LONG = 1.0  # seconds; of a sum that takes longer, later passes have one run more, or none


class Row:
    """One algorithm on one type of vector."""

    def __init__(
        self, problem: BenchCase, name: str, chosen: str, predicted: float
    ) -> None:
        self.problem, self.name = problem, name
        self.chosen, self.predicted = chosen, predicted
        self.taken: list[float] = []

    def visit(self, comm: sparcml.Communicator, x: sparcml.Stream, want: Values) -> None:
        """Run it several times; the slowest rank counts. The first run is only verified."""
        if self.taken and self.taken[0] > 5 * LONG:
            return
        result, first = _timed(comm, x, self.name)
        lossy = self.name in ALLREDUCES and ALLREDUCES[self.name].lossy
        assert lossy or not different(result.to_dense(), want), self.name
        first = _slowest(comm, [first])[0]
        if first > LONG and not lossy:  # whose first call does more than the others
            self.taken.append(first)
            return
        often = int(min(max(BUDGET / first, FEWEST), MOST))
        self.taken += _slowest(comm, [_timed(comm, x, self.name)[1] for _ in range(often)])

    def facts(self) -> dict[str, object]:
        """Return the row to save."""
        p25, p50, p75 = (quantile(self.taken, q) for q in (0.25, 0.5, 0.75))
        return {
            "size": self.problem.size,
            "density": 100 * self.problem.density,
            "algorithm": self.name,
            "chosen": self.chosen,
            "predicted": 1e6 * self.predicted,
            "p25": p25,
            "p50": p50,
            "p75": p75,
            "runs": len(self.taken),
            "wrong": 0,
        }


def _timed(
    comm: sparcml.Communicator, x: sparcml.Stream, name: str
) -> tuple[sparcml.Stream, float]:
    comm.barrier()
    start = comm.now()
    result = comm.allreduce(x, algorithm=name)
    return result, comm.now() - start


def _slowest(comm: sparcml.Communicator, taken: list[float]) -> list[float]:
    return list(map(float, comm.allreduce(np.array(taken), "max", "recursive_double")))


def prepared(comm: sparcml.Communicator, problem: BenchCase) -> list[Row]:
    """Return every algorithm on one type of vector, with its prediction."""
    explained = comm.explain(problem.vector(comm.rank))
    rows = [Row(problem, e.algorithm, "", e.seconds) for e in explained.estimates]
    (taken,) = (row for row in rows if row.name == explained.choice)
    return [*rows, Row(problem, "auto", explained.choice, taken.predicted)]


def measure(comm: sparcml.Communicator, passes: int) -> list[Row]:
    """Return all rows; rounds spread a disturbance of the machine over few runs each."""
    found = {
        problem: prepared(comm, problem)
        for problem in (BenchCase(n, d) for n in SIZES for d in DENSITIES)
    }
    # `auto` is wary of a kind of vectors that changes, as these would in turns.
    fresh = {problem: comm.duplicate() for problem in found}
    for number in range(passes):
        for problem, rows in found.items():
            x, want = problem.vector(comm.rank), problem.total(comm.size)
            for row in rows:
                row.visit(comm if row.name != "auto" else fresh[problem], x, want)
            if comm.rank == 0:
                print(f"pass {number + 1}: {problem}", flush=True)
    return [row for rows in found.values() for row in rows]


def main() -> None:
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--passes", type=int, default=3)
    options.add_argument("--link", default="", help="Link bandwidth, for the report.")
    chosen = options.parse_args()
    with sparcml.world() as comm:
        comm.recalibrate()
        found = [row.facts() for row in measure(comm, chosen.passes)]
        if comm.rank == 0 and chosen.json:
            facts = describe(f"--link {chosen.link} --passes {chosen.passes}", 1) | {
                "link": chosen.link
            }
            write_json(chosen.json, facts, found)


if __name__ == "__main__":
    main()
