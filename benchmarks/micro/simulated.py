"""One case on a virtual clock: its time is exact, so that every data set is summed once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import sparcml
from sparcml.network.bounds import least_seconds
from sparcml.network.presets import network as by_name

from .vectors import SETS, total, vector

if TYPE_CHECKING:
    from sparcml.network import Network

    from .rows import Case, Row


LINKS = ", links alone"  # after a network's name: processors take no time


def of(name: str) -> Network:
    """What a network of that name costs."""
    found = by_name(name.removesuffix(LINKS))
    if name.endswith(LINKS):
        return replace(found, coded=0.0, merged=0.0, written=0.0)
    return found


def measure(case: Case, sets: int = SETS) -> Row:
    """Simulate it; every rank's sum is checked."""
    found = [_once(case, data) for data in range(sets)]
    seconds, wires, filled, wrong = zip(*found, strict=True)
    network = of(case.network)
    k, K = case.stored, float(np.mean(filled))
    least = least_seconds(case.ranks, k, K, byte=network.byte, latency=network.latency)
    return case.row(
        seconds, sets=sets, wire=max(wires), filled=K, least=least, wrong=max(wrong)
    )


def _once(case: Case, data: int) -> tuple[float, int, int, int]:
    """Seconds, bytes of the busiest rank, entries of the sum, and wrong ones."""
    vectors = [vector(case.size, case.density, r, data) for r in range(case.ranks)]
    want = total(vectors)

    def body(comm: sparcml.Communicator) -> int:
        got = comm.allreduce(vectors[comm.rank], algorithm=case.algorithm)
        return int(np.count_nonzero(got.to_dense() != want))

    sim = sparcml.simulate(body, case.ranks, of(case.network), trace=0)
    return sim.seconds, max(sim.rank_bytes), int(np.count_nonzero(want)), max(sim.results)
