"""The lower bound, and that nothing is estimated or simulated to be faster."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES, Network, Workload
from sparcml.communicator.auto import explain
from sparcml.costs.lower_bound import bound, needs
from sparcml.transport import Nodes

from .. import rosters

LINKS_ONLY = Network(
    100e-6,
    20e-6,
    8e-9,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)


@pytest.mark.parametrize("P", [2, 3, 8, 64])
def test_the_lemma(P):
    N, k = 1 << 20, 1 << 6
    steps = int(np.ceil(np.log2(P)))
    assert needs(Workload(N, 4, (N,) * P)) == (steps, 2 * (P - 1) / P * 4 * N)
    # Hardly any of them meet: K = k P. Of n entries a place takes log2(e N / n) bits.
    _, nbytes = needs(Workload(N, 4, (k,) * P))
    entries = max(2 * (P - 1) / P, P - 1) * k
    assert nbytes == pytest.approx(entries * (4 + np.log2(N * np.e / entries) / 8), rel=0.1)
    # All of them meet, or only the largest are wanted: K = k.
    _, nbytes = needs(Workload(N, 4, (k,) * P), lossy=True)
    entries = 2 * (P - 1) / P * k
    assert nbytes == pytest.approx(entries * (4 + np.log2(N / k * np.e) / 8), rel=0.1)


def test_one_rank_needs_nothing_and_an_empty_one_the_whole_sum():
    assert needs(Workload(1000, 4, (1000,))) == (0, 0.0)
    assert needs(Workload(1000, 4, (1000, 0))) == (1, 4000.0)


def test_a_node_needs_what_its_ranks_do_not_have():
    N, nodes = 1 << 20, Nodes((0,) * 4 + (1,) * 4)
    shared = Network(
        latency=160e-6, overhead=80e-6, seconds_per_byte=4e-9
    )  # alone: 100, 20, 1
    flat, nested = (bound(Workload(N, 4, (N,) * 8, n), shared) for n in (None, nodes))
    assert flat == pytest.approx(3 * 160e-6 + 2 * 7 / 8 * 4 * N * 4e-9)
    assert nested == pytest.approx(1 * 100e-6 + 2 * 1 / 2 * 4 * N * 1e-9)


@pytest.mark.parametrize("nodes", [None, Nodes((0, 0, 0, 0, 1, 1, 1, 1))])
@pytest.mark.parametrize("k", [0, 1, 1000, 30_000, 100_000])
def test_no_estimate_is_below_it(k, nodes):
    told = explain(Workload(100_000, 4, (k,) * 8, nodes), Network(), ALLREDUCES)
    assert all(0 < told.percent(e) < 100.01 for e in told.estimates)
    best = max(told.percent(e) for e in told.estimates if not e.lossy)
    assert f"{best:.0f}" in str(told)
    assert "% of bound" in str(told)


@pytest.mark.parametrize("algorithm", [a for a in rosters.LOSSLESS if a != "native"])
@pytest.mark.parametrize("density", [0.01, 1.0])
def test_nothing_simulated_is_below_it(algorithm, density):
    N, P, k = 20_000, 4, int(20_000 * density)

    def work(comm):
        rng = np.random.default_rng(comm.rank)
        places = np.sort(rng.choice(N, k, replace=False))
        x = sparcml.Stream(N, places, np.ones(k, np.float32))
        comm.allreduce(x, algorithm=algorithm)

    sim = sparcml.simulate(work, P, LINKS_ONLY, trace=0)
    least = bound(Workload(N, 4, (k,) * P), LINKS_ONLY)
    assert sim.seconds > 0.98 * least


def test_dense_codes_cost_what_they_send():
    """Half a byte a value, no places to code, nothing to merge."""
    x, coder = np.ones(1 << 17, np.float32), sparcml.QSGD(bits=4)

    def work(comm):
        told = comm.explain(x, quantize=coder)
        comm.stats.reset()
        comm.allreduce(x, algorithm="dsar_split_allgather", quantize=coder)
        return told, comm.stats.bytes

    told, sent = sparcml.launch(work, 4)[0]
    assert told.workload.entry_bytes == pytest.approx(0.5, rel=0.01)
    rows = {e.algorithm: e for e in told.estimates}
    row = rows["dsar_split_allgather"]
    assert row.nbytes == pytest.approx(sent, rel=0.01)
    net, N = told.network, len(x)
    links = 2 * net.latency + 4 * net.overhead + net.seconds_per_byte * sent
    written = 2 * 1.5 * N + 0.75 * N + 1.25 * N  # coded and decoded, added, put together
    assert row.seconds == pytest.approx(links + net.seconds_per_written * written, rel=0.01)
