"""Measure whole sums by every algorithm, and weigh what each declares by that.

Messages that travel alone, and kernels that run alone, tell too little of a sum: ranks
share processors, links let a first burst pass, engines handle some patterns better.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..collectives import ALLREDUCES, Workload
from ..communicator.communicator import Communicator
from ..communicator.declared import CostEstimate
from ..costs.calibration import Calibration, parts_of
from ..stream import Stream
from ..transport.bootstrap import broadcast
from .least_squares import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..collectives import Network
    from ..transport import Nodes, Transport

# Size and density of the vectors: from what only waits to what only sends or adds.
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
PASSES = 3  # over all of them: what disturbs one for some seconds disturbs few samples
BUDGET = 0.05  # seconds for a sample's repeats in one pass
FEWEST, MOST = 2, 3
ONCE = 0.25  # seconds; a sum that takes longer is left out of later passes
LONGEST = 3.0  # seconds that a sum may take
BURSTS = (0, *(1 << n for n in range(13, 22)))  # bytes
UNIT = 1e-3  # seconds of starting that weigh as much as all waiting
TRUST = 0.005  # in the declared cost, against the samples; weights of 30 occur


class Sample(NamedTuple):
    """One sum: by which algorithm, of what, and how long it took."""

    algorithm: str
    size: int
    nnz: int
    seconds: float


class Tuning(NamedTuple):
    """Weights of all algorithms, and how far off they leave each (root mean square)."""

    calibrations: tuple[Calibration, ...]
    burst: float
    misfits: dict[str, float]


def samples(
    transport: Transport, network: Network, progress: Callable[[str], object]
) -> list[Sample]:
    """Sums by every algorithm; on rank 0, which decides, all are true.

    Args:
        transport: Between the ranks; all call this, while nothing else is under way.
        network: What things cost, roughly.
        progress: Is told what is next.
    """
    comm = Communicator(transport, network)
    names = [
        name
        for name, algorithm in ALLREDUCES.items()
        if transport.nodes.is_hierarchy or not algorithm.multi_node
    ]
    times: dict[tuple[str, int, float], list[float]] = {}
    for number in range(PASSES):
        for size, density in POINTS:
            progress(f"sums of {size} values, {number + 1} of {PASSES}")
            for name in names:
                _visit(comm, transport, (name, size, density), times)
    found = [_sample(what, taken) for what, taken in times.items()]
    _vector.cache_clear()  # nobody needs them again
    return found


def _visit(
    comm: Communicator,
    transport: Transport,
    what: tuple[str, int, float],
    times: dict[tuple[str, int, float], list[float]],
) -> None:
    """One algorithm on one kind of vector, if it is not too slow for that."""
    name, size, density = what
    x = _vector(size, density, comm.rank)
    taken = times.get(what)
    if taken is None:
        before = [_sample(key, times[key]) for key in times if key[0] == name]
        expected = _expected(comm, transport.nodes, Sample(name, size, x.nnz, 0.0), before)
        if not _agreed(transport, expected, LONGEST):
            return
    elif not _agreed(transport, float(np.median(taken)), ONCE):
        return
    sum_up = partial(comm.allreduce, x, algorithm=name)
    times.setdefault(what, []).extend(_times(comm, transport, sum_up))


def _sample(what: tuple[str, int, float], taken: list[float]) -> Sample:
    name, size, density = what
    nnz = _vector(size, density, 0).nnz
    return Sample(name, size, nnz, max(float(np.median(taken)), 1e-9))


def _expected(
    comm: Communicator, nodes: Nodes, sample: Sample, before: list[Sample]
) -> float:
    """Seconds that a sum will take, as declared or by the last one of its algorithm."""
    seconds = _declared(sample, nodes).seconds(comm.network)
    if before:
        then = _declared(before[-1], nodes).seconds(comm.network)
        seconds *= before[-1].seconds / max(then, 1e-9)
    return seconds


def _declared(sample: Sample, nodes: Nodes) -> CostEstimate:
    workload = Workload(sample.size, 4, (sample.nnz,) * len(nodes.of), nodes)
    return CostEstimate(ALLREDUCES[sample.algorithm], workload)


def _agreed(transport: Transport, seconds: float, most: float) -> bool:
    """Whether rank 0 finds that short enough."""
    return broadcast(transport, b"yes" if seconds <= most else b"no") == b"yes"


def _times(
    comm: Communicator, transport: Transport, sum_up: Callable[[], object]
) -> list[float]:
    """The slowest rank's, of which the first is not counted."""
    first = _timed(comm, sum_up)
    often = int(min(max(BUDGET / max(first, 1e-9), FEWEST), MOST))
    often = len(broadcast(transport, bytes(often)))
    times = np.array([_timed(comm, sum_up) for _ in range(often)])
    return list(map(float, comm.allreduce(times, op="max", algorithm="recursive_double")))


def _timed(comm: Communicator, sum_up: Callable[[], object]) -> float:
    comm.barrier()
    start = comm.now()
    sum_up()
    return comm.now() - start


@cache
def _vector(size: int, density: float, rank: int) -> Stream:
    """Entries at random places: each is one with the same chance, whatever the others."""
    rng = np.random.default_rng([size, rank])
    places = np.cumsum(rng.geometric(density, int(size * density * 1.5) + 100)) - 1
    indices = places[places < size].astype(np.uint32)
    return Stream(size, indices, rng.standard_normal(len(indices), np.float32))


def tune(found: Iterable[Sample], network: Network, nodes: Nodes) -> Tuning:
    """Weights with which all algorithms come close to their samples.

    The burst is one for all: that with which they come closest.
    """
    by_name: dict[str, list[Sample]] = {}
    for sample in found:
        by_name.setdefault(sample.algorithm, []).append(sample)
    tried = [_with_burst(by_name, network, nodes, burst) for burst in BURSTS]
    return min(tried, key=lambda tuning: sum(m**2 for m in tuning.misfits.values()))


def _with_burst(
    by_name: dict[str, list[Sample]], network: Network, nodes: Nodes, burst: int
) -> Tuning:
    network = replace(network, burst=float(burst))
    calibrations, misfits = [], {}
    for name, of_name in by_name.items():
        rows = [(UNIT, *_parts(network, _declared(sample, nodes))) for sample in of_name]
        fit = least_squares(rows, [s.seconds for s in of_name], trust=TRUST)
        start, *weights = fit.costs
        calibrations.append(Calibration(name, UNIT * start, *weights))
        misfits[name] = fit.misfit
    return Tuning(tuple(calibrations), float(burst), misfits)


def _parts(network: Network, declared: CostEstimate) -> tuple[float, float, float]:
    return parts_of(network, declared.nbytes, declared.seconds)
