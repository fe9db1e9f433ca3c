"""What one rank does to measure an allreduce: timed runs and a checked sum."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream
from sparcml.cli.bench.baselines import PEERS, Job
from sparcml.cli.bench.common import quantile
from sparcml.cli.bench.vectors import different
from sparcml.collectives import ALLREDUCES
from sparcml.costs.bounds import least_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.cli.bench.common import Row
    from sparcml.cli.bench.vectors import Problem
    from sparcml.quantize import Quantizer

SUMS = [name for name, a in ALLREDUCES.items() if not a.lossy]  # can be checked as sums
OURS = ("native", *(name for name in SUMS if name != "native"), "auto")
EVERY = (*PEERS, *OURS)
SILENT = (*PEERS, "native")  # an engine does not say what it sends
SECONDS = 0.3  # of runs for a row
WARM_UPS, MOST_RUNS = 2, 1000


def called(quantizer: Quantizer) -> str:
    """A short name for a row: its kind, with its bits if they can differ."""
    return f"{type(quantizer).__name__}{getattr(quantizer, 'bits', '')}"


def quantizes(algorithm: str) -> bool:
    """Whether values can be coded on its way."""
    return algorithm == "auto" or (
        algorithm in ALLREDUCES and ALLREDUCES[algorithm].quantizes
    )


class _Ours(Job):
    def __init__(
        self, comm: Communicator, x: Stream, algorithm: str, quantizer: Quantizer | None
    ) -> None:
        self._comm, self._x = comm, x
        self._options: dict[str, Any] = {"algorithm": algorithm, "quantize": quantizer}

    def run(self) -> Stream:
        total: Stream = self._comm.allreduce(self._x, **self._options)
        return total


class Trial:
    """One problem on one rank: its vector, and the sum that every rank must get.

    Args:
        comm: The ranks.
        problem: What they sum.
        runs: How many are timed, at least.
        link: Bytes a second that a rank can send, if that is known.
    """

    def __init__(
        self,
        comm: Communicator,
        problem: Problem,
        runs: int = 5,
        link: float | None = None,
    ) -> None:
        self.comm, self.problem, self.runs, self.link = comm, problem, runs, link
        self.x = problem.vector(comm.rank)
        self.want = problem.total(comm.size)
        self._dense: float | None = None

    def measure(
        self, algorithm: str, quantizer: Quantizer | None = None, seconds: float = SECONDS
    ) -> Row:
        """Time one of EVERY; all ranks call it, and all get the same row.

        The slowest rank counts, and the one that sends most. Runs last `seconds`
        together, unless that makes too few or too many.
        """
        job = self._job(algorithm, quantizer)
        choice = algorithm
        if algorithm == "auto":
            choice = self.comm.explain(self.x, quantize=quantizer).choice
        job.prepare()
        job.run()  # the first is slow, and `auto` may still follow an old habit
        self.comm.stats.reset()
        job.prepare()
        allowed = 0.0 if quantizer is None else self.problem.coding_error(self.comm.size)
        wrong = different(_dense(job.run()), self.want, allowed)
        counts = np.array([self.comm.stats.bytes, wrong], np.float64)
        times = _timed(self.comm, job, seconds, self.runs)
        sent, wrong = map(int, np.max(self.comm.allgather(counts), axis=0))
        slowest = np.max(self.comm.allgather(times), axis=0)
        row = self._row(slowest, None if choice in SILENT else sent)
        if algorithm in PEERS:  # the faster of them
            self._dense = min(row["p50"], self._dense or np.inf)
        row["speedup"] = None if self._dense is None else self._dense / row["p50"]
        coding = None if quantizer is None else called(quantizer)
        names = {"algorithm": algorithm, "choice": choice, "quantize": coding}
        return {**names, **row, "wrong": wrong}

    def _job(self, algorithm: str, quantizer: Quantizer | None) -> Job:
        if algorithm in PEERS:
            return PEERS[algorithm](self.comm, self.x.to_dense())
        return _Ours(self.comm, self.x, algorithm, quantizer)

    def _row(self, times: NDArray[np.float64], sent: int | None) -> Row:
        problem, ranks = self.problem, self.comm.size
        least = 2 * (ranks - 1) / ranks * problem.nbytes  # what a dense sum must send
        p50 = quantile(times, 0.5)
        algbw = problem.nbytes / p50 / 1e3
        bound = None if self.link is None else 1e6 * (sent or least) / self.link
        lower = None if self.link is None else 1e6 * self._least_seconds(1 / self.link)
        return {
            "size": problem.nbytes,
            "density": 100 * problem.density,
            "nnz": problem.nnz,
            "wire": sent,
            "ratio": least / sent if sent else None,
            "runs": times.size,
            "min": quantile(times, 0.0),
            "p25": quantile(times, 0.25),
            "p50": p50,
            "p75": quantile(times, 0.75),
            "p99": quantile(times, 0.99),
            "algbw": algbw,
            "busbw": algbw * least / problem.nbytes,
            "bound": bound,
            "of_bound": None if bound is None else 100 * bound / p50,
            "lower": lower,
            "of_lower": None if lower is None else 100 * lower / p50,
        }

    def _least_seconds(self, byte: float) -> float:
        """What no lossless sum of such vectors can do without on these links."""
        p, P = self.problem, self.comm.size
        blocks = p.size // p.block
        filled = blocks * (1 - (1 - p.nnz / blocks) ** P)
        each = p.nbytes // blocks
        return least_seconds(P, p.nnz, filled, byte=byte, value_bytes=each)


def _dense(x: Stream | NDArray[Any]) -> NDArray[Any]:
    return x.to_dense() if isinstance(x, Stream) else x


def _timed(comm: Communicator, job: Job, seconds: float, least: int) -> NDArray[np.float64]:
    """Seconds of each run, after as many warm-ups as tell how many runs it takes."""
    warm = statistics.median(_once(comm, job) for _ in range(WARM_UPS))
    runs = min(MOST_RUNS, max(least, int(seconds / warm)))
    # Ranks differ in what they saw, and must not differ in what they do.
    runs = int(comm.broadcast(np.array([runs], np.float64))[0])
    return np.array([_once(comm, job) for _ in range(runs)])


def _once(comm: Communicator, job: Job) -> float:
    job.prepare()
    comm.barrier()
    start = time.perf_counter()
    result = job.run()
    spent = time.perf_counter() - start
    del result  # giving the memory back is not part of the sum
    return spent
