"""Hierarchical allreduce: laws, costs, and where it is faster than flat algorithms."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Network, Workload
from sparcml.costs.estimate import estimate
from sparcml.costs.network import COMPUTE_COSTS
from sparcml.transport import Nodes
from sparcml.transport.nodes import find_nodes
from sparcml.transport.virtual.links import Link

from .. import laws, rosters

NAME = "hierarchical"
# Node of every rank: by block, round robin, and of unequal size.
LAYOUTS = ((0, 1), (0, 0, 1, 1), (0, 1, 2, 0, 1), (0, 0, 0, 1), (5, 2, 2, 2, 2, 2, 7))
LINKS_ONLY = Network(100e-6, 20e-6, 8e-9).without(COMPUTE_COSTS)
MEMORY = Network(1e-6, 0.2e-6, 0.1e-9).without(COMPUTE_COSTS)
SIZE = 200_000


def launch(body, layout):
    def placed(comm):
        comm._transport.nodes = Nodes(layout)
        return body(comm)

    return sparcml.launch(placed, len(layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_laws_for_every_layout(layout):
    def body(comm):
        for case in laws.CASES:
            laws.declared_cost(comm, NAME, case)
            laws.same_sum(comm, NAME, case)
        for op in rosters.OPS:
            laws.same_bits(comm, NAME, op)
            laws.nan_stays(comm, NAME, op)

    launch(body, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_first_rank_of_a_node_sends_to_other_nodes(layout):
    def body(comm):
        comm.stats.sent = []
        comm.allreduce(np.ones(100, np.float32), algorithm=NAME)
        return [peer for peer, _ in comm.stats.sent]

    leaders = [layout.index(node) for node in dict.fromkeys(layout)]
    for rank, peers in enumerate(launch(body, layout)):
        others = [peer for peer in peers if layout[peer] != layout[rank]]
        assert set(others) == (set(leaders) - {rank} if rank in leaders else set())


@pytest.mark.parametrize("ranks", rosters.RANKS)
def test_ranks_find_the_nodes(ranks):
    places = [f"host {rank * rank % 5}" for rank in range(ranks)]

    def body(comm):
        return find_nodes(comm._transport, places[comm.rank].encode())

    numbers = list(dict.fromkeys(places))
    want = Nodes(tuple(numbers.index(place) for place in places))
    assert sparcml.launch(body, ranks) == [want] * ranks


def test_duplicates_and_splits_know_their_nodes():
    def body(comm):
        part = comm.split(comm.rank % 3, key=-comm.rank)
        return part._transport.nodes.of, comm.duplicate()._transport.nodes.of

    results = launch(body, (0, 0, 0, 1, 1, 1))
    assert [of for of, _ in results] == [(1, 0)] * 6
    assert {of for _, of in results} == {(0, 0, 0, 1, 1, 1)}


def vector(rank, nnz, size=SIZE):
    rng = np.random.default_rng(rank)
    indices = np.sort(rng.choice(size, nnz, replace=False))
    return sparcml.Stream(size, indices, np.ones(nnz, np.float32))


def simulated(algorithm, ranks, per_node, network, nnz):
    def work(comm):
        comm.allreduce(vector(comm.rank, nnz), algorithm=algorithm)

    sim = sparcml.simulate(work, ranks, network, ranks_per_node=per_node, trace=0)
    return sim.seconds


def explanation(ranks, per_node, network, nnz):
    def work(comm):
        return comm.explain(vector(comm.rank, nnz))

    sim = sparcml.simulate(work, ranks, network, ranks_per_node=per_node, trace=0)
    return sim.results[0]


@pytest.mark.slow
@pytest.mark.parametrize("nnz", [200, 2000])
def test_it_is_faster_than_flat_algorithms_where_ranks_share_a_slow_link(nnz):
    assert explanation(16, 4, "1gbit", nnz).choice == NAME
    seconds = simulated(NAME, 16, 4, "1gbit", nnz)
    flat = [
        simulated(name, 16, 4, "1gbit", nnz)
        for name, a in ALLREDUCES.items()
        if not (a.lossy or a.multi_node or (a.is_dense and not a.is_native))
        and not a.quantized_only
    ]
    assert len(flat) == 5
    assert 1.2 * seconds < min(flat)


@pytest.mark.parametrize(("ranks", "per_node"), [(8, 1), (8, 8)])
@pytest.mark.parametrize("nnz", [200, 20_000])
def test_auto_does_not_consider_it_on_one_level(ranks, per_node, nnz):
    found = explanation(ranks, per_node, "1gbit", nnz)
    assert found.choice != NAME
    assert NAME not in str(found)


@pytest.mark.parametrize(("ranks", "per_node"), [(4, 2), (8, 4), (16, 4), (6, 2), (16, 8)])
def test_simulated_time_is_the_declared_one(ranks, per_node):
    size = 1500 * ranks

    def work(comm):
        comm.allreduce(np.ones(size, np.float32), algorithm=NAME)
        return comm.network

    sim = sparcml.simulate(
        work, ranks, LINKS_ONLY, ranks_per_node=per_node, intra_node=MEMORY
    )
    link = Link(MEMORY.latency, MEMORY.overhead, MEMORY.seconds_per_byte)
    nodes = Nodes(tuple(rank // per_node for rank in range(ranks)), link)
    workload = Workload(size, 4, (size,) * ranks, nodes)
    want = estimate(ALLREDUCES[NAME], workload, sim.results[0])
    assert sim.seconds == pytest.approx(want.seconds, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["recursive_double", "sharded"])
def test_flat_algorithms_are_estimated_with_messages_within_nodes(algorithm):
    size = 1500 * 16

    def work(comm):
        comm.allreduce(np.ones(size, np.float32), algorithm=algorithm)
        return comm.stats.allreduces[algorithm]

    sim = sparcml.simulate(work, 16, LINKS_ONLY, ranks_per_node=4, intra_node=MEMORY)
    assert sim.results[0].predicted == pytest.approx(sim.seconds, rel=0.25)
