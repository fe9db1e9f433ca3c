"""The lower bound, and that nothing is estimated, simulated or counted below it."""

import numpy as np
import pytest
from claims import watched

import sparcml
from sparcml import Communicator, Stream
from sparcml.communicator.selection import explain
from sparcml.costs import Network, Workload, ring_nbytes
from sparcml.costs.lower_bound import lower_bound, lower_bound_seconds, min_received
from sparcml.costs.network import COMPUTE_COSTS
from sparcml.transport import Nodes

from .. import rosters

LINKS_ONLY = Network(100e-6, 20e-6, 8e-9).without(COMPUTE_COSTS)
SIZE, NNZ = 960, 60
SPARSE = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "ssar_ring",
)


@pytest.mark.parametrize("P", [2, 3, 8, 64])
def test_entries_are_those_of_the_lemma_for_equal_and_for_disjoint_indices(P):
    assert min_received(P, 10, 10) == pytest.approx(2 * (P - 1) / P * 10)
    assert min_received(P, 10, 10 * P) == pytest.approx((P - 1) * 10)
    assert min_received(1, 10, 10) == 0


@pytest.mark.parametrize("P", [2, 3, 8, 64])
def test_bytes_are_values_and_the_indices_that_a_rank_lacks(P):
    N, k = 1 << 20, 1 << 6
    dense = lower_bound(Workload(N, 4, (N,) * P))
    assert dense.rounds == int(np.ceil(np.log2(P)))
    assert dense.nbytes == ring_nbytes(P, 4 * N)
    # Random indices rarely coincide, K = P k. One of n indices takes log2(e N / n) bits.
    lacking = (P - 1) * k
    index = lacking * np.log2(N * np.e / lacking) / 8
    sparse = lower_bound(Workload(N, 4, (k,) * P))
    assert sparse.nbytes == pytest.approx((P - 1) * k * 4 + index, rel=0.1)
    # Equal indices, or only the largest entries: K = k.
    equal = lower_bound(Workload(N, 4, (k,) * P), result_nnz=k)
    assert equal.nbytes == ring_nbytes(P, 4 * k)
    assert lower_bound(Workload(N, 4, (k,) * P), lossy=True) == equal


def test_a_full_result_needs_no_indices():
    bound = lower_bound(Workload(1000, 4, (600,) * 4), result_nnz=1000)
    assert bound.nbytes == 4 * (600 + 2 / 4 * 1000)


def test_one_rank_needs_nothing_and_an_empty_one_the_full_result():
    assert lower_bound(Workload(1000, 4, (1000,))).nbytes == 0
    empty = lower_bound(Workload(1000, 4, (1000, 0)))
    assert (empty.rounds, empty.nbytes) == (1, 4000.0)


def test_a_node_counts_as_one_rank():
    N, nodes = 1 << 20, Nodes((0,) * 4 + (1,) * 4)
    # Exclusive use of the link: 100 us, 20 us, 1 ns.
    shared = Network(latency=160e-6, overhead=80e-6, seconds_per_byte=4e-9)
    flat, nested = (
        lower_bound_seconds(Workload(N, 4, (N,) * 8, placement), shared)
        for placement in (None, nodes)
    )
    assert flat == pytest.approx(3 * 160e-6 + 2 * 7 / 8 * 4 * N * 4e-9)
    assert nested == pytest.approx(1 * 100e-6 + 2 * 1 / 2 * 4 * N * 1e-9)


@pytest.mark.parametrize("nodes", [None, Nodes((0, 0, 0, 0, 1, 1, 1, 1))])
@pytest.mark.parametrize("k", [0, 1, 1000, 30_000, 100_000])
def test_no_estimate_is_below_it(k, nodes):
    workload = Workload(100_000, 4, (k,) * 8, nodes)
    explanation = explain(workload, Network(), rosters.ALLREDUCES)
    assert all(0 < explanation.percent(e) < 100.01 for e in explanation.estimates)
    best = max(explanation.percent(e) for e in explanation.estimates if not e.lossy)
    assert f"{best:.0f}" in str(explanation)
    assert "% of lower bound" in str(explanation)
    assert "<th>% of lower bound</th>" in explanation._repr_html_()


@pytest.mark.parametrize("algorithm", [a for a in rosters.LOSSLESS if a != "native"])
@pytest.mark.parametrize("density", [0.01, 1.0])
def test_nothing_simulated_is_below_it(algorithm, density):
    N, P, k = 20_000, 4, int(20_000 * density)

    def work(comm):
        rng = np.random.default_rng(comm.rank)
        indices = np.sort(rng.choice(N, k, replace=False))
        comm.allreduce(Stream(N, indices, np.ones(k, np.float32)), algorithm=algorithm)

    sim = sparcml.simulate(work, P, LINKS_ONLY, trace=0)
    bound = lower_bound_seconds(Workload(N, 4, (k,) * P), LINKS_ONLY)
    assert sim.seconds > 0.98 * bound


def received(algorithm, vectors):
    """Return the entries that all ranks receive, and the nnz of the result."""

    def body(link):
        return Communicator(link).allreduce(vectors[link.rank], algorithm=algorithm)

    results, sent = watched.run(len(vectors), body)
    return sum(message.entries for message in sent), np.count_nonzero(results[0].to_dense())


def vectors(overlap, ranks):
    rng = np.random.default_rng(3)
    for rank in range(ranks):
        indices = {
            "equal": np.arange(NNZ),
            "disjoint": np.arange(NNZ) + rank * NNZ,
            "random": np.sort(rng.choice(SIZE, NNZ, replace=False)),
        }[overlap]
        yield Stream(SIZE, indices, np.ones(NNZ, np.float32))


@pytest.mark.parametrize("overlap", ["equal", "disjoint", "random"])
@pytest.mark.parametrize("algorithm", SPARSE)
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_no_allreduce_receives_fewer_entries(algorithm, overlap, ranks):
    entries, result_nnz = received(algorithm, list(vectors(overlap, ranks)))
    assert entries >= ranks * min_received(ranks, NNZ, result_nnz) - 1e-9


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_dense_ring_receives_no_more(ranks):
    full = [np.arange(1, SIZE + 1, dtype=np.float32)] * ranks
    _, sent = watched.run(
        ranks, lambda link: Communicator(link).allreduce(full[link.rank], algorithm="ring")
    )
    entries = sum(message.entries for message in sent)
    assert entries == pytest.approx(ranks * min_received(ranks, SIZE, SIZE))


def test_quantized_dense_ranges_cost_what_they_send():
    """Half a byte and a 64th per value, no indices to encode, nothing to merge."""
    x, quantizer = np.ones(1 << 17, np.float32), sparcml.QSGD(bits=4)

    def work(comm):
        explanation = comm.explain(x, quantize=quantizer)
        comm.stats.reset()
        comm.allreduce(x, algorithm="dsar_split_allgather", quantize=quantizer)
        return explanation, comm.stats.bytes

    explanation, sent = sparcml.launch(work, 4)[0]
    assert explanation.workload.entry_bytes == 0.5 + 4 / 256
    rows = {e.algorithm: e for e in explanation.estimates}
    row = rows["dsar_split_allgather"]
    assert row.nbytes == pytest.approx(sent, rel=0.01)
    net, N = explanation.network, len(x)
    links = 2 * net.latency + 4 * net.overhead + net.seconds_per_byte * sent
    written = 2 * 1.5 * N + 0.75 * N + 1.25 * N  # encoded and decoded, added, assembled
    assert row.seconds == pytest.approx(links + net.seconds_per_written * written, rel=0.01)
