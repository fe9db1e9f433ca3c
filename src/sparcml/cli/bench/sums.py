"""What one rank does to measure an allreduce: timed runs and a checked sum."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream
from sparcml.cli.bench.common import quantile
from sparcml.cli.bench.vectors import different
from sparcml.collectives import ALLREDUCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.cli.bench.common import Row
    from sparcml.cli.bench.vectors import Problem

BASELINE = "mpi_allreduce"  # the engine's own, blocking, on dense vectors that are ready
SUMS = [name for name, a in ALLREDUCES.items() if not a.lossy]  # can be checked as sums
EVERY = (BASELINE, "native", *(name for name in SUMS if name != "native"), "auto")
WARM_UPS, LEAST_RUNS, MOST_RUNS = 2, 5, 1000


class Trial:
    """One problem on one rank: its vector, and the sum that every rank must get."""

    def __init__(self, comm: Communicator, problem: Problem) -> None:
        self.comm, self.problem = comm, problem
        self.x = problem.vector(comm.rank)
        self.want = problem.total(comm.size)
        self._base: float | None = None

    def measure(self, algorithm: str, seconds: float = 0.3) -> Row:
        """Time one of EVERY; all ranks call it, and all get the same row.

        The slowest rank counts, and the one that sends most. Runs last `seconds`
        together, unless that makes too few or too many.
        """
        run = self._run(algorithm)
        choice = self.comm.explain(self.x).choice if algorithm == "auto" else algorithm
        self.comm.stats.reset()
        wrong = different(_dense(run()), self.want)  # the first run is slow: not timed
        counts = np.array([self.comm.stats.bytes, wrong], np.float64)
        times = _timed(self.comm, run, seconds)
        sent, wrong = map(int, np.max(self.comm.allgather(counts), axis=0))
        slowest = np.max(self.comm.allgather(times), axis=0)
        known = choice not in (BASELINE, "native")  # an engine does not say what it sends
        row = _row(self.problem, self.comm.size, slowest, sent if known else None)
        if algorithm == BASELINE:
            self._base = row["p50"]
        row["speedup"] = None if self._base is None else self._base / row["p50"]
        return {"algorithm": algorithm, "choice": choice, **row, "wrong": wrong}

    def _run(self, algorithm: str) -> Callable[[], Stream | NDArray[Any]]:
        if algorithm == BASELINE:
            return _blocking(self.x.to_dense())
        return lambda: self.comm.allreduce(self.x, algorithm=algorithm)


def _blocking(dense: NDArray[Any]) -> Callable[[], NDArray[Any]]:
    from mpi4py import MPI

    total = np.zeros_like(dense)

    def run() -> NDArray[Any]:
        MPI.COMM_WORLD.Allreduce(dense, total)
        return total

    return run


def _dense(x: Stream | NDArray[Any]) -> NDArray[Any]:
    return x.to_dense() if isinstance(x, Stream) else x


def _timed(
    comm: Communicator, run: Callable[[], object], seconds: float
) -> NDArray[np.float64]:
    """Seconds of each run, after as many warm-ups as tell how many runs it takes."""
    warm = statistics.median(_once(comm, run) for _ in range(WARM_UPS))
    runs = min(MOST_RUNS, max(LEAST_RUNS, int(seconds / warm)))
    # Ranks differ in what they saw, and must not differ in what they do.
    runs = int(comm.broadcast(np.array([runs], np.float64))[0])
    return np.array([_once(comm, run) for _ in range(runs)])


def _once(comm: Communicator, run: Callable[[], object]) -> float:
    comm.barrier()
    start = time.perf_counter()
    result = run()
    spent = time.perf_counter() - start
    del result  # giving the memory back is not part of the sum
    return spent


def _row(problem: Problem, ranks: int, times: NDArray[np.float64], sent: int | None) -> Row:
    factor = 2 * (ranks - 1) / ranks  # what a rank must send of a dense vector
    p50 = quantile(times, 0.5)
    algbw = problem.nbytes / p50 / 1e3
    return {
        "size": problem.nbytes,
        "density": 100 * problem.density,
        "nnz": problem.nnz,
        "wire": sent,
        "ratio": factor * problem.nbytes / sent if sent else None,
        "runs": times.size,
        "min": quantile(times, 0.0),
        "p50": p50,
        "p99": quantile(times, 0.99),
        "algbw": algbw,
        "busbw": algbw * factor,
    }
