"""Measure allreduces by every algorithm, and calibrate their declared costs.

The times of single messages and kernels do not determine the time of an allreduce: ranks share
processors, links let a first burst pass, and engines handle some message patterns better.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..collectives import ALLREDUCES
from ..communicator.communicator import Communicator
from ..costs import Calibration, Workload
from ..costs.estimate import CostEstimate
from ..stream import Stream
from ..transport.bootstrap import broadcast
from .least_squares import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..costs import Network
    from ..transport import Nodes, Transport

# Size and density of the vectors: from dominated by latency to dominated by bytes or work.
POINTS = (
    (1 << 12, 0.01),
    (1 << 16, 0.1),
    (1 << 20, 0.001),
    (1 << 20, 0.01),
    (1 << 20, 0.1),
    (1 << 22, 0.01),
    (1 << 24, 0.001),
    (1 << 24, 0.01),
    (1 << 24, 0.1),
)
SWEEPS = 3  # over all points, so that a disturbance of some seconds affects few samples
BUDGET = 0.05  # seconds per sample and sweep
MIN_RUNS, MAX_RUNS = 2, 3  # per sample and sweep
ONE_SWEEP = 0.25  # seconds; slower allreduces are measured in the first sweep only
MAX_SECONDS = 3.0  # slower allreduces are not measured
BURSTS = (0, *(1 << n for n in range(13, 22)))  # bytes
UNIT = 1e-3  # seconds of start-up that weigh as much as all latencies
TRUST = 0.005  # weight of the declared cost against the samples; weights of 30 occur


class Sample(NamedTuple):
    """The time of one allreduce."""

    algorithm: str
    size: int
    nnz: int
    seconds: float


class FittedCalibration(NamedTuple):
    """Calibrations of all algorithms, the burst of a link, and each algorithm's misfit."""

    calibrations: tuple[Calibration, ...]
    burst: float
    misfits: dict[str, float]


def measure_allreduces(
    transport: Transport, network: Network, progress: Callable[[str], object]
) -> list[Sample]:
    """Measure allreduces by every algorithm. Collective; the samples of rank 0 count.

    Args:
        transport: The transport, while it is not in use otherwise.
        network: Measured costs without calibration.
        progress: Called with a description of each part.
    """
    comm = Communicator(transport, network)
    names = [
        name
        for name, algorithm in ALLREDUCES.items()
        if (transport.nodes.is_hierarchy or not algorithm.multi_node)
        and not algorithm.quantized_only
    ]
    times: dict[tuple[str, int, float], list[float]] = {}
    for sweep in range(SWEEPS):
        for size, density in POINTS:
            progress(f"allreduces of {size} values, {sweep + 1} of {SWEEPS}")
            for name in names:
                _measure(comm, transport, (name, size, density), times)
    samples = [_sample(point, seconds) for point, seconds in times.items()]
    _vector.cache_clear()  # free the vectors
    return samples


def _measure(
    comm: Communicator,
    transport: Transport,
    point: tuple[str, int, float],
    times: dict[tuple[str, int, float], list[float]],
) -> None:
    """Measure one algorithm on one type of vector, unless it is too slow."""
    name, size, density = point
    x = _vector(size, density, comm.rank)
    measured = times.get(point)
    if measured is None:
        earlier = [_sample(key, times[key]) for key in times if key[0] == name]
        expected = _expected(comm, transport.nodes, Sample(name, size, x.nnz, 0.0), earlier)
        if not _agree(transport, expected, MAX_SECONDS):
            return
    elif not _agree(transport, float(np.median(measured)), ONE_SWEEP):
        return
    allreduce = partial(comm.allreduce, x, algorithm=name)
    times.setdefault(point, []).extend(_run_times(comm, transport, allreduce))


def _sample(point: tuple[str, int, float], seconds: list[float]) -> Sample:
    name, size, density = point
    nnz = _vector(size, density, 0).nnz
    return Sample(name, size, nnz, max(float(np.median(seconds)), 1e-9))


def _expected(
    comm: Communicator, nodes: Nodes, sample: Sample, earlier: list[Sample]
) -> float:
    """Return the declared seconds, scaled by the algorithm's last sample if there is one."""
    seconds = _estimate(sample, nodes).seconds(comm.network)
    if earlier:
        estimated = _estimate(earlier[-1], nodes).seconds(comm.network)
        seconds *= earlier[-1].seconds / max(estimated, 1e-9)
    return seconds


def _estimate(sample: Sample, nodes: Nodes) -> CostEstimate:
    workload = Workload(sample.size, 4, (sample.nnz,) * len(nodes.of), nodes)
    return CostEstimate(ALLREDUCES[sample.algorithm], workload)


def _agree(transport: Transport, seconds: float, limit: float) -> bool:
    """Return whether the seconds of rank 0 are within the limit. Collective."""
    return broadcast(transport, b"yes" if seconds <= limit else b"no") == b"yes"


def _run_times(
    comm: Communicator, transport: Transport, allreduce: Callable[[], object]
) -> list[float]:
    """Return the times of the slowest rank, without the first run."""
    first = _run_time(comm, allreduce)
    runs = int(min(max(BUDGET / max(first, 1e-9), MIN_RUNS), MAX_RUNS))
    runs = len(broadcast(transport, bytes(runs)))
    times = np.array([_run_time(comm, allreduce) for _ in range(runs)])
    return list(map(float, comm.allreduce(times, op="max", algorithm="recursive_double")))


def _run_time(comm: Communicator, allreduce: Callable[[], object]) -> float:
    comm.barrier()
    start = comm.now()
    allreduce()
    return comm.now() - start


@cache
def _vector(size: int, density: float, rank: int) -> Stream:
    """Return a random vector whose entries are nonzero independently of each other."""
    rng = np.random.default_rng([size, rank])
    positions = np.cumsum(rng.geometric(density, int(size * density * 1.5) + 100)) - 1
    indices = positions[positions < size].astype(np.uint32)
    return Stream(size, indices, rng.standard_normal(len(indices), np.float32))


def calibrate(
    samples: Iterable[Sample], network: Network, nodes: Nodes
) -> FittedCalibration:
    """Fit the calibration of every algorithm to its samples.

    All algorithms share the burst with the smallest total misfit.
    """
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.algorithm, []).append(sample)
    fits = [_fit(by_name, network, nodes, burst) for burst in BURSTS]
    return min(fits, key=lambda fit: sum(m**2 for m in fit.misfits.values()))


def _fit(
    by_name: dict[str, list[Sample]], network: Network, nodes: Nodes, burst: int
) -> FittedCalibration:
    network = replace(network, burst=float(burst))
    calibrations, misfits = [], {}
    for name, samples in by_name.items():
        estimates = [_estimate(sample, nodes) for sample in samples]
        rows = [(UNIT, *network.parts(e.nbytes, e.seconds)) for e in estimates]
        fit = least_squares(rows, [s.seconds for s in samples], trust=TRUST)
        start, *weights = fit.costs
        calibrations.append(Calibration(name, UNIT * start, *weights))
        misfits[name] = fit.misfit
    return FittedCalibration(tuple(calibrations), float(burst), misfits)
