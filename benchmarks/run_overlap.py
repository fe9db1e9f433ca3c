"""Overlap of computing and communication: NumPy calls during an `iallreduce`, on two ranks.

Start it with one rank per machine, or on an emulated network (see docs/benchmarks.md):

    mpiexec -n 2 python benchmarks/run_overlap.py --json FILE

Three times are measured in turn: the allreduce by itself, NumPy calls of about a millisecond
for the same time, and both together. The slowest rank counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import sparcml
from sparcml.bench.results import quantile, write_json
from sparcml.bench.vectors import BenchCase, different
from sparcml.environment import describe

CALL = 1e-3  # seconds of NumPy in one call


class Work:
    """A NumPy call of about a millisecond, on data that stays in the cache."""

    def __init__(self) -> None:
        x = np.random.default_rng(0).standard_normal(1 << 11)
        self._x, self._y = x, np.empty_like(x)
        once = min(self._timed() for _ in range(50))
        self._x = np.tile(x, max(1, round(CALL / once)))
        self._y = np.empty_like(self._x)

    def call(self) -> None:
        """Make one call."""
        np.arctan2(self._x, self._x[::-1], out=self._y)

    def _timed(self) -> float:
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start


class Experiment:
    """The three times on one rank."""

    def __init__(self, comm: sparcml.Communicator, problem: BenchCase) -> None:
        self.comm, self.x, self.work = comm, problem.vector(comm.rank), Work()
        self.want = problem.total(comm.size)
        self.calls = 0

    def alone(self) -> float:
        """Return the seconds of the allreduce by itself."""
        start = time.perf_counter()
        total = self.comm.iallreduce(self.x).wait()
        spent = time.perf_counter() - start
        assert not different(total.to_dense(), self.want)
        return spent

    def computing(self) -> float:
        """Return the seconds of the NumPy calls by themselves."""
        start = time.perf_counter()
        for _ in range(self.calls):
            self.work.call()
        return time.perf_counter() - start

    def both(self) -> float:
        """Return the seconds of the same calls during the allreduce, until both are done."""
        start = time.perf_counter()
        with self.comm.iallreduce(self.x) as request:
            self.computing()
            total = request.wait()
        spent = time.perf_counter() - start
        assert not different(total.to_dense(), self.want)
        return spent

    def round(self) -> list[float]:
        """Measure the three in turn; all ranks start each together."""
        times = []
        for part in (self.alone, self.computing, self.both):
            self.comm.barrier()
            times.append(part())
        return times


def measure(comm: sparcml.Communicator, problem: BenchCase, runs: int) -> dict[str, object]:
    """Return the row of the table, the same on all ranks."""
    trial = Experiment(comm, problem)
    comm.barrier()
    sum_takes = np.median([trial.alone() for _ in range(5)])
    trial.calls = 50
    comm.barrier()
    call_takes = np.median([trial.computing() for _ in range(3)]) / trial.calls
    # As many calls on each rank as last as long as the sum does on the slower one.
    slowest = np.max(comm.allgather(np.array([sum_takes])))
    trial.calls = max(1, round(float(slowest) / float(call_takes)))
    times = np.array([trial.round() for _ in range(runs)])
    alone, computing, both = (
        np.max(comm.allgather(times.reshape(-1)), axis=0).reshape(times.shape).T
    )
    longer = np.maximum(alone, computing)
    row: dict[str, object] = {"ranks": comm.size, "size": problem.nbytes, "runs": runs}
    row["density"] = 100 * problem.density
    for name, column in (("alone", alone), ("computing", computing), ("both", both)):
        row[name] = quantile(column, 0.5)
    row["ratio"] = float(np.median(both / longer))
    row["ratio_q1"], row["ratio_q3"] = map(float, np.quantile(both / longer, (0.25, 0.75)))
    return row | {"wrong": 0}


def main() -> None:
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--runs", type=int, default=10)
    chosen = options.parse_args()
    with sparcml.world() as comm:
        rows = [
            measure(comm, BenchCase(1 << 24, density), chosen.runs)
            for density in (0.01, 0.1)
        ]
        if comm.rank == 0:
            for row in rows:
                print(
                    {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}
                )
            if chosen.json:
                facts = describe(f"--ranks {comm.size} --runs {chosen.runs}", 1)
                write_json(chosen.json, facts, rows)


if __name__ == "__main__":
    main()
