"""One rank's part of an allreduce benchmark: timed runs and a checked sum."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream
from sparcml.bench.baselines import BASELINES, Contender
from sparcml.bench.results import quantile
from sparcml.bench.vectors import different
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Workload, ring_nbytes
from sparcml.costs.lower_bound import lower_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.bench.results import Row
    from sparcml.bench.vectors import BenchCase
    from sparcml.quantize import Quantizer

SECONDS = 0.3  # timed runs of a row, in total
WARM_UPS, MAX_RUNS = 2, 1000


def own_algorithms() -> tuple[str, ...]:
    """Return sparcml's lossless allreduces, `native` first and `auto` last."""
    lossless = [a for a in ALLREDUCES.values() if not a.lossy]
    native_first = sorted(lossless, key=lambda a: not a.is_native)
    return (*(a.name for a in native_first), "auto")


def all_algorithms() -> tuple[str, ...]:
    """Return the baselines and sparcml's own algorithms."""
    return (*BASELINES, *own_algorithms())


def supports_quantization(algorithm: str) -> bool:
    """Return whether an algorithm can send quantized values."""
    return algorithm == "auto" or (
        algorithm in ALLREDUCES and ALLREDUCES[algorithm].supports_quantization
    )


def short_name(quantizer: Quantizer) -> str:
    """Return the class of a quantizer, followed by its bits if it has that setting."""
    return f"{type(quantizer).__name__}{getattr(quantizer, 'bits', '')}"


class _Allreduce(Contender):
    def __init__(
        self, comm: Communicator, x: Stream, algorithm: str, quantizer: Quantizer | None
    ) -> None:
        self._comm, self._x = comm, x
        self._options: dict[str, Any] = {"algorithm": algorithm, "quantize": quantizer}

    def run(self) -> Stream:
        result: Stream = self._comm.allreduce(self._x, **self._options)
        return result


class Trial:
    """One case on one rank: its vector, and the sum that every rank must get.

    Args:
        comm: Communicator of the ranks.
        case: Vectors to reduce.
        runs: Minimum number of timed runs.
        link: Bandwidth of a rank's link in bytes per second, if known.
    """

    def __init__(
        self,
        comm: Communicator,
        case: BenchCase,
        runs: int = 5,
        link: float | None = None,
    ) -> None:
        self.comm, self.case, self.runs, self.link = comm, case, runs, link
        self.x = case.vector(comm.rank)
        self.expected = case.total(comm.size)
        self._dense_time: float | None = None

    def measure(
        self, algorithm: str, quantizer: Quantizer | None = None, seconds: float = SECONDS
    ) -> Row:
        """Time one algorithm and return its row, the same on every rank. Collective.

        The row has the times of the slowest rank and the bytes of the rank that sends most.

        Args:
            algorithm: A name of `all_algorithms`.
            quantizer: Quantizer of the values.
            seconds: Duration of all timed runs, within `runs` and `MAX_RUNS`.
        """
        contender = self._contender(algorithm, quantizer)
        choice = algorithm
        if algorithm == "auto":
            choice = self.comm.explain(self.x, quantize=quantizer).choice
        contender.prepare()
        contender.run()  # the first run is slow, and `auto` may use a cached choice
        self.comm.stats.reset()
        contender.prepare()
        error = 0.0
        if quantizer is not None:
            error = self.case.quantization_error(quantizer, self.comm.size)
        wrong = different(_dense(contender.run()), self.expected, error)
        counts = np.array([self.comm.stats.bytes, wrong], np.float64)
        times = _run_times(self.comm, contender, seconds, self.runs)
        sent, wrong = map(int, np.max(self.comm.allgather(counts), axis=0))
        slowest = np.max(self.comm.allgather(times), axis=0)
        counted = choice not in BASELINES and not ALLREDUCES[choice].is_native
        row = self._row(slowest, sent if counted else None)
        if algorithm in BASELINES:  # the speedup refers to the faster baseline
            self._dense_time = min(row["p50"], self._dense_time or np.inf)
        row["speedup"] = None if self._dense_time is None else self._dense_time / row["p50"]
        name = None if quantizer is None else short_name(quantizer)
        names = {"algorithm": algorithm, "choice": choice, "quantize": name}
        return {**names, **row, "wrong": wrong}

    def _contender(self, algorithm: str, quantizer: Quantizer | None) -> Contender:
        if algorithm in BASELINES:
            return BASELINES[algorithm](self.comm, self.x.to_dense())
        return _Allreduce(self.comm, self.x, algorithm, quantizer)

    def _row(self, times: NDArray[np.float64], sent: int | None) -> Row:
        case, ranks = self.case, self.comm.size
        dense_bytes = ring_nbytes(ranks, case.nbytes)
        p50 = quantile(times, 0.5)
        algbw = case.nbytes / p50 / 1e3
        bound = None if self.link is None else 1e6 * (sent or dense_bytes) / self.link
        lower = None if self.link is None else 1e6 * self._lower_bound(1 / self.link)
        return {
            "size": case.nbytes,
            "density": 100 * case.density,
            "nnz": case.nnz,
            "wire": sent,
            "ratio": dense_bytes / sent if sent else None,
            "runs": times.size,
            "min": quantile(times, 0.0),
            "p25": quantile(times, 0.25),
            "p50": p50,
            "p75": quantile(times, 0.75),
            "p99": quantile(times, 0.99),
            "algbw": algbw,
            "busbw": algbw * dense_bytes / case.nbytes,
            "bound": bound,
            "of_bound": None if bound is None else 100 * bound / p50,
            "lower": lower,
            "of_lower": None if lower is None else 100 * lower / p50,
        }

    def _lower_bound(self, seconds_per_byte: float) -> float:
        """Return the minimum seconds of a lossless allreduce of these vectors."""
        case, P = self.case, self.comm.size
        blocks = case.size // case.block
        workload = Workload(blocks, case.nbytes // blocks, (case.nnz,) * P)
        return lower_bound(workload).nbytes * seconds_per_byte


def _dense(x: Stream | NDArray[Any]) -> NDArray[Any]:
    return x.to_dense() if isinstance(x, Stream) else x


def _run_times(
    comm: Communicator, contender: Contender, seconds: float, min_runs: int
) -> NDArray[np.float64]:
    """Return the seconds of each run. Rank 0 sets their number after its warm-ups."""
    warm = statistics.median(_run_once(comm, contender) for _ in range(WARM_UPS))
    runs = min(MAX_RUNS, max(min_runs, int(seconds / warm)))
    runs = int(comm.broadcast(np.array([runs], np.float64))[0])
    return np.array([_run_once(comm, contender) for _ in range(runs)])


def _run_once(comm: Communicator, contender: Contender) -> float:
    contender.prepare()
    comm.barrier()
    start = time.perf_counter()
    result = contender.run()
    elapsed = time.perf_counter() - start
    del result  # freeing the memory is not part of the allreduce
    return elapsed
