"""Cases under a virtual clock: times are exact, so that every data set runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import sparcml
from sparcml.costs import Workload
from sparcml.costs.lower_bound import lower_bound
from sparcml.costs.network import COMPUTE_COSTS
from sparcml.network.presets import network as by_name

from .rows import Case, Row
from .vectors import SETS, total, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sparcml.network import Network

LINKS = ", links alone"  # after a network's name: processors take no time


def of(name: str) -> Network:
    """Return the network of a name."""
    found = by_name(name.removesuffix(LINKS))
    if name.endswith(LINKS):
        return found.without(COMPUTE_COSTS)
    return found


def measure(
    network: str,
    ranks: int,
    size: int,
    density: float,
    algorithms: Sequence[str],
    sets: int = SETS,
) -> list[Row]:
    """Return a row per algorithm, all with the same vectors; every result is verified."""
    links = of(network)
    filled, found = [], []
    for data in range(sets):
        vectors = [vector(size, density, rank, data) for rank in range(ranks)]
        want = total(vectors)
        filled.append(np.count_nonzero(want))
        found.append([_once(name, vectors, want, links) for name in algorithms])
    K = float(np.mean(filled))
    rows = []
    for name, runs in zip(algorithms, zip(*found, strict=True), strict=True):
        case = Case("simulated", network, ranks, size, density, name)
        seconds, wires, wrong = zip(*runs, strict=True)
        workload = Workload(size, 4, (case.stored,) * ranks)
        least = lower_bound(workload, result_nnz=K).seconds(links)
        rows.append(
            case.row(
                seconds,
                sets=sets,
                wire=max(wires),
                filled=K,
                least=least,
                wrong=max(wrong),
            )
        )
    return rows


def _once(
    algorithm: str,
    vectors: Sequence[sparcml.Stream],
    want: NDArray[np.float32],
    links: Network,
) -> tuple[float, int, int]:
    """Return seconds, bytes of the busiest rank, and wrong entries of the worst one."""

    def body(comm: sparcml.Communicator) -> int:
        y = comm.allreduce(vectors[comm.rank], algorithm=algorithm)
        return int(np.count_nonzero(y.to_dense() != want))

    sim = sparcml.simulate(body, len(vectors), links, trace=0)
    return sim.seconds, max(sim.rank_bytes), max(sim.results)
