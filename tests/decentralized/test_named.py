"""Topologies by name and from files, and the order of their messages."""

import numpy as np
import pytest

from sparcml import decentralized as dec
from sparcml.decentralized.named import NAMES, by_name
from sparcml.decentralized.topologies.schedule import send_orders

from .. import rosters


@pytest.mark.parametrize("name", NAMES)
def test_topologies_by_name(name):
    assert by_name(name, 12).size == 12
    assert by_name("torus:2x6", 12) == dec.torus(2, 6)
    assert by_name("torus", 12) == dec.torus(3, 4)
    assert by_name("base_graph:3", 12) == dec.base_graph(12, 3)


def test_topologies_of_files(tmp_path):
    W = dec.star(4).matrix()
    np.save(tmp_path / "w.npy", W)
    np.savetxt(tmp_path / "w.csv", W, delimiter=",")
    for name in ("w.npy", "w.csv"):
        np.testing.assert_allclose(by_name(str(tmp_path / name), 4).matrix(), W)
    for text, why in (
        (str(tmp_path / "w.npy"), "must be for 5 ranks, got a matrix of 4"),
        (str(tmp_path / "none.npy"), "is not a matrix"),
        ("rign", "topology must be one of ring, torus, .* got 'rign'"),
        ("ring:2", "topology ring has no option, got '2'"),
        ("torus:2x2", "sides with the product 5, such as torus:1x5, got '2x2'"),
        ("random_regular:x", "must have a degree such as random_regular:4, got 'x'"),
    ):
        with pytest.raises(ValueError, match=why):
            by_name(text, 5)


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
@pytest.mark.parametrize("n", [2, 7, 12, 31])
def test_no_two_ranks_send_to_the_same_one_at_a_time(name, n):
    topology = rosters.TOPOLOGIES[name](n)
    for step in range(topology.period):
        orders = [topology.receivers(rank, step) for rank in range(n)]
        degree = max(len(topology.neighbors(rank, step)) for rank in range(n))
        if {len(order) for order in orders} == {degree}:
            for slot in range(degree):
                assert len({order[slot] for order in orders}) == n


def test_slots_suffice_for_random_graphs():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, density = int(rng.integers(1, 14)), rng.random()
        sources = [
            [j for j in range(n) if j != i and rng.random() < density] for i in range(n)
        ]
        orders = send_orders(sources)
        for rank in range(n):
            assert sorted(orders[rank]) == [i for i in range(n) if rank in sources[i]]
