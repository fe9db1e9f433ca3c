"""Measure whole sums by every algorithm, and weigh what each declares by that.

Messages that travel alone, and kernels that run alone, tell too little of a sum: ranks
share processors, links let a first burst pass, engines handle some patterns better.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..collectives import ALLREDUCES, Problem
from ..collectives.declared import Declared
from ..collectives.tuning import Tuned, parts_of
from ..communicator import Communicator
from ..stream import Stream
from .fit import least_squares
from .share import share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
BUDGET = 0.2  # seconds for a sample's repeats
FEWEST, MOST = 2, 9
LONGEST = 2.0  # seconds that a sum may take, unless there would be too few
ENOUGH = 5  # samples of an algorithm
BURSTS = (0, *(1 << n for n in range(13, 22)))  # bytes
UNIT = 1e-3  # seconds of starting that weigh as much as all waiting
TRUST = 0.05  # in the declared cost, against the samples


class Sample(NamedTuple):
    """One sum: by which algorithm, of what, and how long it took."""

    algorithm: str
    size: int
    nnz: int
    seconds: float


class Tuning(NamedTuple):
    """Weights of all algorithms, and how far off they leave each (root mean square)."""

    tuned: tuple[Tuned, ...]
    burst: float
    misfits: dict[str, float]


def samples(
    transport: Transport, network: Network, progress: Callable[[str], object]
) -> list[Sample]:
    """Sums by every algorithm; on rank 0, which decides, all are true.

    Args:
        transport: Between the ranks; all call this, while nothing else is under way.
        network: What things cost, roughly.
        progress: Is told which algorithm is next.
    """
    comm = Communicator(transport, network)
    found = []
    for name in ALLREDUCES:
        if ALLREDUCES[name].nested and not transport.nodes.is_hierarchy:
            continue
        progress(name)
        found += _samples(comm, transport, name)
    _vector.cache_clear()  # nobody needs them again
    return found


def _samples(comm: Communicator, transport: Transport, name: str) -> list[Sample]:
    found: list[Sample] = []
    for size, density in POINTS:
        x = _vector(size, density, comm.rank)
        if len(found) >= ENOUGH:
            expected = _expected(comm, transport.nodes, found, x)
            if not _agreed(transport, expected):
                continue
        sum_up = partial(comm.allreduce, x, algorithm=name)
        found.append(Sample(name, size, x.nnz, _median(comm, transport, sum_up)))
    return found


def _expected(
    comm: Communicator, nodes: Nodes, found: Sequence[Sample], x: Stream
) -> float:
    """Seconds that the next sum will take, by the last one."""
    last = found[-1]
    then, now = (
        _declared(sample, nodes).seconds(comm.network)
        for sample in (last, last._replace(size=x.size, nnz=x.nnz))
    )
    return last.seconds * now / max(then, 1e-9)


def _declared(sample: Sample, nodes: Nodes) -> Declared:
    problem = Problem(sample.size, 4, (sample.nnz,) * len(nodes.of), nodes)
    return Declared(ALLREDUCES[sample.algorithm], problem)


def _agreed(transport: Transport, seconds: float) -> bool:
    """Whether rank 0 finds that short enough."""
    return share(transport, b"yes" if seconds <= LONGEST else b"no") == b"yes"


def _median(
    comm: Communicator, transport: Transport, sum_up: Callable[[], object]
) -> float:
    """The slowest rank's time, of which the first is not counted."""
    first = _timed(comm, sum_up)
    often = int(min(max(BUDGET / max(first, 1e-9), FEWEST), MOST))
    often = len(share(transport, bytes(often)))
    times = np.array([_timed(comm, sum_up) for _ in range(often)])
    slowest = comm.allreduce(times, op="max", algorithm="recursive_double")
    return max(float(np.median(slowest)), 1e-9)


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
    tuned, misfits = [], {}
    for name, of_name in by_name.items():
        rows = [(UNIT, *_parts(network, _declared(sample, nodes))) for sample in of_name]
        fit = least_squares(rows, [s.seconds for s in of_name], trust=TRUST)
        start, *weights = fit.costs
        tuned.append(Tuned(name, UNIT * start, *weights))
        misfits[name] = fit.misfit
    return Tuning(tuple(tuned), float(burst), misfits)


def _parts(network: Network, declared: Declared) -> tuple[float, float, float]:
    return parts_of(network, declared.nbytes, declared.seconds)
