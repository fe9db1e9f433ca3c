"""Two levels: who shares a node adds up first. Laws, costs, and where it wins."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Network, Workload
from sparcml.costs.estimate import estimate
from sparcml.transport import Nodes
from sparcml.transport.nodes import find_nodes
from sparcml.transport.virtual.links import Link

from .. import laws, rosters

NAME = "hierarchical"
# The node of every rank: as launchers place them, in turns, and of unequal size.
LAYOUTS = ((0, 1), (0, 0, 1, 1), (0, 1, 2, 0, 1), (0, 0, 0, 1), (5, 2, 2, 2, 2, 2, 7))
LINKS_ONLY = Network(
    100e-6,
    20e-6,
    8e-9,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
INSIDE = Network(
    1e-6,
    0.2e-6,
    0.1e-9,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
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
def test_only_the_first_of_a_node_talks_to_others(layout):
    def body(comm):
        comm.stats.sent = []
        comm.allreduce(np.ones(100, np.float32), algorithm=NAME)
        return [peer for peer, _ in comm.stats.sent]

    leaders = [layout.index(node) for node in dict.fromkeys(layout)]
    for rank, peers in enumerate(launch(body, layout)):
        others = [peer for peer in peers if layout[peer] != layout[rank]]
        assert set(others) == (set(leaders) - {rank} if rank in leaders else set())


@pytest.mark.parametrize("ranks", rosters.RANKS)
def test_ranks_find_out_who_shares_a_node(ranks):
    places = [f"host {rank * rank % 5}" for rank in range(ranks)]

    def body(comm):
        return find_nodes(comm._transport, places[comm.rank].encode())

    numbers = list(dict.fromkeys(places))
    want = Nodes(tuple(numbers.index(place) for place in places))
    assert sparcml.launch(body, ranks) == [want] * ranks


def test_groups_know_who_shares_a_node():
    def body(comm):
        part = comm.split(comm.rank % 3, key=-comm.rank)
        return part._transport.nodes.of, comm.duplicate()._transport.nodes.of

    found = launch(body, (0, 0, 0, 1, 1, 1))
    assert [of for of, _ in found] == [(1, 0)] * 6
    assert {of for _, of in found} == {(0, 0, 0, 1, 1, 1)}


def vector(rank, stored, size=SIZE):
    rng = np.random.default_rng(rank)
    places = np.sort(rng.choice(size, stored, replace=False))
    return sparcml.Stream(size, places, np.ones(stored, np.float32))


def simulated(algorithm, ranks, per_node, network, stored):
    def work(comm):
        comm.allreduce(vector(comm.rank, stored), algorithm=algorithm)

    sim = sparcml.simulate(work, ranks, network, ranks_per_node=per_node, trace=0)
    return sim.seconds


def choice(ranks, per_node, network, stored):
    def work(comm):
        return comm.explain(vector(comm.rank, stored))

    sim = sparcml.simulate(work, ranks, network, ranks_per_node=per_node, trace=0)
    return sim.results[0]


@pytest.mark.slow
@pytest.mark.parametrize("stored", [200, 2000])
def test_it_beats_flat_sums_where_ranks_share_a_slow_link(stored):
    told = choice(16, 4, "1gbit", stored)
    assert told.choice == NAME
    taken = simulated(NAME, 16, 4, "1gbit", stored)
    flat = [
        simulated(name, 16, 4, "1gbit", stored)
        for name, a in ALLREDUCES.items()
        if not (a.lossy or a.multi_node or (a.is_dense and not a.is_native))
    ]
    assert len(flat) == 5
    assert 1.2 * taken < min(flat)


@pytest.mark.parametrize(("ranks", "per_node"), [(8, 1), (8, 8)])
@pytest.mark.parametrize("stored", [200, 20_000])
def test_it_is_not_offered_on_one_level(ranks, per_node, stored):
    told = choice(ranks, per_node, "1gbit", stored)
    assert told.choice != NAME
    assert NAME not in str(told)


@pytest.mark.parametrize(("ranks", "per_node"), [(4, 2), (8, 4), (16, 4), (6, 2), (16, 8)])
def test_simulated_time_is_the_declared_one(ranks, per_node):
    size = 1500 * ranks

    def work(comm):
        comm.allreduce(np.ones(size, np.float32), algorithm=NAME)
        return comm.network

    sim = sparcml.simulate(
        work, ranks, LINKS_ONLY, ranks_per_node=per_node, intra_node=INSIDE
    )
    near = Link(INSIDE.latency, INSIDE.overhead, INSIDE.seconds_per_byte)
    nodes = Nodes(tuple(rank // per_node for rank in range(ranks)), near)
    workload = Workload(size, 4, (size,) * ranks, nodes)
    want = estimate(ALLREDUCES[NAME], workload, sim.results[0])
    assert sim.seconds == pytest.approx(want.seconds, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["recursive_double", "sharded"])
def test_flat_sums_are_estimated_with_what_they_send_inside(algorithm):
    size = 1500 * 16

    def work(comm):
        comm.allreduce(np.ones(size, np.float32), algorithm=algorithm)
        return comm.stats.allreduces[algorithm]

    sim = sparcml.simulate(work, 16, LINKS_ONLY, ranks_per_node=4, intra_node=INSIDE)
    told = sim.results[0]
    assert told.predicted == pytest.approx(sim.seconds, rel=0.25)
