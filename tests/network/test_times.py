"""Simulated time is what the formulas say, wherever they are exact."""

from functools import partial
from math import log2

import numpy as np
import pytest

import sparcml
from sparcml import wire
from sparcml.collectives import ALLREDUCES
from sparcml.collectives.allgather import cost as allgather_cost
from sparcml.costs import Network, Workload
from sparcml.costs.workload import PayloadCount

ALPHA, BETA = 100e-6, 8e-9
LINKS_ONLY = Network(
    ALPHA,
    20e-6,
    BETA,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
SERIAL = Network(
    ALPHA,
    ALPHA,
    BETA,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
ALL = Network(ALPHA, 20e-6, BETA)
HEADER = wire.header.SIZE
EVEN = [name for name, a in ALLREDUCES.items() if name != "native" and not a.multi_node]


def seconds(algorithm, ranks, size, network):
    x = np.ones(size, np.float32)
    return sparcml.simulate(
        lambda comm: comm.allreduce(x, algorithm=algorithm), ranks, network
    ).seconds


def declared(algorithm, ranks, size, network):
    workload = Workload(size, 4, (size,) * ranks)
    cost = ALLREDUCES[algorithm].pipelined_cost or ALLREDUCES[algorithm].cost
    return max(network.seconds(cost(rank, workload), 4) for rank in range(ranks))


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("algorithm", EVEN)
def test_messages_take_what_the_model_says(algorithm, ranks):
    size = 1500 * ranks
    got = seconds(algorithm, ranks, size, LINKS_ONLY)
    assert got == pytest.approx(declared(algorithm, ranks, size, LINKS_ONLY), rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("algorithm", ["recursive_double", "halving_doubling"])
def test_with_all_that_is_computed(algorithm, ranks):
    size = 1500 * ranks
    got = seconds(algorithm, ranks, size, ALL)
    assert got == pytest.approx(declared(algorithm, ranks, size, ALL), rel=1e-12)


@pytest.mark.parametrize("algorithm", EVEN)
def test_what_overlaps_takes_less_than_the_sum(algorithm):
    got = seconds(algorithm, 8, 12_000, ALL)
    assert seconds(algorithm, 8, 12_000, LINKS_ONLY) < got
    assert got <= declared(algorithm, 8, 12_000, ALL) * (1 + 1e-12)


@pytest.mark.parametrize("ranks", [2, 8])
def test_the_engines_own_takes_its_declared_time(ranks):
    got = seconds("native", ranks, 12_000, ALL)
    agree = allgather_cost(0, ranks, lambda _: PayloadCount(0, 0, 0, 0, 4))
    want = declared("native", ranks, 12_000, ALL) + ALL.seconds(agree, 4)
    assert got == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("P", [2, 4, 8, 32])
def test_the_formulas_of_the_literature(P):
    """One message at a time, alpha + beta L each; every message carries a header."""
    N = 1024 * P
    whole, part, head = 4 * N * BETA, 4 * N / P * BETA, HEADER * BETA
    steps = log2(P)
    want = {
        "recursive_double": steps * (ALPHA + head + whole),
        "ring": 2 * (P - 1) * (ALPHA + head + part),
        "halving_doubling": 2 * steps * (ALPHA + head) + 2 * (P - 1) * part,
        "sharded": 2 * (P - 1) * (ALPHA + head + part),
        "master": 2 * (P - 1) * (ALPHA + head + whole),
    }
    for algorithm, time in want.items():
        assert seconds(algorithm, P, N, SERIAL) == pytest.approx(time, rel=1e-12), algorithm


@pytest.mark.parametrize("P", [2, 4, 8, 32])
def test_sparse_streams_lie_between_the_bounds_of_the_paper(P):
    """Recursive doubling: from full overlap to none, in bytes as they are sent."""
    k, N = 50, 100_000

    def work(apart, comm):
        rng = np.random.default_rng(0)
        places = np.sort(rng.choice(N // P, k, replace=False)) * P + apart * comm.rank
        x = sparcml.Stream(N, places, np.ones(k, np.float32))
        comm.allreduce(x, algorithm="ssar_recursive_double")
        return comm.stats.bytes

    for apart in (0, 1):
        sim = sparcml.simulate(partial(work, apart), P, LINKS_ONLY)
        (sent,) = set(sim.results)
        assert sim.seconds == pytest.approx(log2(P) * ALPHA + sent * BETA, rel=1e-12)
        rounds = log2(P) if apart == 0 else P - 1
        assert rounds * 4 * k < sent <= rounds * 8 * k + log2(P) * HEADER
