"""Construction of topologies: random graphs, matrices, networkx, names, bad input."""

import pickle
import time
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparcml import decentralized as dec

from .. import rosters

HALF: Any = 0.5


@pytest.mark.parametrize(("degree", "low"), [(4, 0.10), (6, 0.21)])
def test_gap_of_random_regular_graphs(degree, low):
    topology = dec.random_regular(1024, degree)
    limit = 1 - (1 + 2 * np.sqrt(degree - 1)) / (degree + 1)
    assert low < topology.spectral_gap < limit + 0.01
    assert topology.is_symmetric


@pytest.mark.parametrize(
    ("n", "degree"), [(1, 0), (2, 1), (3, 2), (4, 3), (7, 4), (8, 7), (10, 3), (50, 5)]
)
def test_random_graphs_are_regular(n, degree):
    for seed in range(4):
        topology = dec.random_regular(n, degree, seed)
        for rank in range(n):
            neighbors = topology.neighbors(rank)
            assert len(neighbors) == degree
            assert rank not in neighbors
            own, weights = topology.weights(rank)
            assert {own, *weights.values()} == {1 / (1 + degree)}
    assert dec.random_regular(n, degree, 1) == dec.random_regular(n, degree, 1)
    if n >= 10:
        assert dec.random_regular(n, degree, 1) != dec.random_regular(n, degree, 2)


def test_random_graphs_of_degree_two_are_connected():
    for seed in range(20):  # most are several cycles at first
        assert dec.random_regular(12, 2, seed).spectral_gap > 0.01


def test_from_matrix_takes_one_or_several():
    W = dec.ring(4).matrix()
    for given in (W, W.tolist(), csr_array(W), [W], W[None]):
        topology = dec.from_matrix(given)
        assert (topology.size, topology.period) == (4, 1)
        np.testing.assert_array_equal(topology.matrix(), W)
    several = [dec.one_peer_exponential(8).matrix(s).copy() for s in range(3)]
    for given in (several, np.array(several), tuple(several)):
        topology = dec.from_matrix(given)
        assert topology.period == 3
        assert topology.rho == pytest.approx(0, abs=1e-15)
        np.testing.assert_array_equal(topology.matrix(4), several[1])
    several[0][0, 0] = 7  # the topology has copies
    assert topology.matrix(0)[0, 0] == 0.5


def test_a_sequence_may_be_connected_only_together():
    first = np.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    pairs = [np.roll(first, (shift, shift), (0, 1)) for shift in range(3)]
    assert dec.from_matrix(pairs).size == 4
    with pytest.raises(ValueError, match="no path from rank 0 to rank 2"):
        dec.from_matrix(pairs[0])


def test_from_matrix_of_columns():
    A = np.array([[1 / 3, 0, 1 / 2], [1 / 3, 1 / 2, 0], [1 / 3, 1 / 2, 1 / 2]])
    topology = dec.from_matrix(A, stochastic="columns")
    assert topology.is_column_stochastic
    assert not topology.is_row_stochastic
    assert not topology.is_doubly_stochastic
    assert topology.receivers(0) == [1, 2]
    with pytest.raises(ValueError, match=r"every row of W must add up to 1, got 0\.83"):
        dec.from_matrix(A)


def test_from_networkx():
    topology = dec.from_networkx(nx.cycle_graph(9))
    np.testing.assert_allclose(topology.matrix(), dec.ring(9).matrix(), atol=1e-15)
    uniform = dec.from_networkx(nx.path_graph(3), weights="uniform")
    assert uniform.weights(0) == (1 / 2, {1: 1 / 2})
    assert uniform.weights(1) == (1 / 3, {0: 1 / 3, 2: 1 / 3})
    directed = dec.from_networkx(nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2), (1, 1)]))
    assert directed.neighbors(2) == [0, 1]
    assert directed.receivers(0) == [1, 2]
    assert directed.weights(1) == (1 / 2, {0: 1 / 2})
    assert dec.from_networkx(nx.MultiGraph([(0, 1), (0, 1)])).degree == 1


@pytest.mark.parametrize(
    ("build", "error", "why"),
    [
        (lambda: dec.ring(0), ValueError, "ring: n must be >= 1, got 0"),
        (lambda: dec.ring(HALF), TypeError, "ring: n must be an integer, got 0.5"),
        (lambda: dec.ring(True), TypeError, "ring: n must be an integer, got True"),
        (dec.torus, ValueError, r"torus: sides must be given, such as torus\(4"),
        (lambda: dec.torus(4, 0), ValueError, "torus: sides must be >= 1, got 0"),
        (lambda: dec.star(-1), ValueError, "star: n must be >= 1"),
        (
            lambda: dec.star(4, "equal"),
            ValueError,
            "star: weights must be uniform or metropolis, got 'equal'; use from_matrix",
        ),
        (lambda: dec.complete(0), ValueError, "complete: n must be >= 1"),
        (lambda: dec.exponential(0), ValueError, "exponential: n must be >= 1"),
        (lambda: dec.one_peer_exponential(0), ValueError, "one_peer_exponential: n must"),
        (lambda: dec.base_graph(5, 0), ValueError, "base_graph: degree must be >= 1"),
        (
            lambda: dec.random_regular(5, 3),
            ValueError,
            "n times degree must be even, got 5",
        ),
        (
            lambda: dec.random_regular(6, 6),
            ValueError,
            "degree must be from 2 to 5 for 6 connected ranks, got 6",
        ),
        (lambda: dec.random_regular(6, 1), ValueError, "degree must be from 2 to 5"),
        (
            lambda: dec.from_matrix(np.eye(2)),
            ValueError,
            "from_matrix: graph must be connected, got no path from rank 0 to rank 1; add",
        ),
        (
            lambda: dec.from_matrix([[1, 0], [0.5, 0.5]]),  # rank 0 hears no one
            ValueError,
            "got no path from rank 1 to rank 0",
        ),
        (
            lambda: dec.from_matrix([[0.5, 0.6], [0.5, 0.5]]),
            ValueError,
            "every row of W must add up to 1, got 1.1 in row 0; divide W by W.sum",
        ),
        (
            lambda: dec.from_matrix([[1.5, -0.5], [0.5, 0.5]]),
            ValueError,
            r"W must not have negative entries, got W\[0, 1\] = -0.5",
        ),
        (
            lambda: dec.from_matrix(np.ones((2, 3))),
            ValueError,
            r"square .* got shape \(2, 3",
        ),
        (lambda: dec.from_matrix([]), ValueError, r"square matrix, got shape \(0,\)"),
        (lambda: dec.from_matrix("ring"), TypeError, "matrix of numbers, got 'ring'"),
        (lambda: dec.from_matrix([[1, 2], [1]]), TypeError, "matrix of numbers, got .*1"),
        (lambda: dec.from_matrix(3.0), ValueError, r"square matrix, got shape \(\)"),
        (lambda: dec.from_matrix([[np.nan]]), ValueError, "W must have finite entries"),
        (
            lambda: dec.from_matrix([np.eye(1), np.full((2, 2), 0.5)]),
            ValueError,
            r"all matrices must have one size, got \[1, 2\]",
        ),
        (
            lambda: dec.from_matrix(np.eye(1), stochastic="both"),
            ValueError,
            "stochastic must be rows or columns, got 'both'",
        ),
        (
            lambda: dec.from_networkx(nx.Graph([(0, 1), (2, 3)])),
            ValueError,
            "from_networkx: graph must be connected, got no path from rank 0 to rank 2",
        ),
        (
            lambda: dec.from_networkx(nx.DiGraph([(0, 1)])),
            ValueError,
            "from_networkx: graph must be connected, got no path from rank 1 to rank 0",
        ),
        (
            lambda: dec.from_networkx(nx.Graph([("a", "b")])),
            ValueError,
            r"nodes must be 0 to n - 1, got \['a', 'b'\] in a graph of 2; use networkx",
        ),
        (lambda: dec.from_networkx(nx.Graph()), ValueError, "got .* in a graph of 0"),
        (lambda: dec.from_networkx([(0, 1)]), TypeError, "networkx graph, got list"),
        (
            lambda: dec.from_networkx(nx.DiGraph([(0, 1), (1, 0)]), "metropolis"),
            ValueError,
            "weights must be uniform for a directed graph, got 'metropolis'",
        ),
        (lambda: dec.ring(4).neighbors(4), ValueError, r"rank must be in \[0, 4\), got 4"),
        (lambda: dec.ring(4).weights(0, -1), ValueError, "step must be >= 0, got -1"),
        (lambda: dec.ring(4).matrix(HALF), TypeError, "step must be an integer, got 0.5"),
    ],
)
def test_bad_input(build, error, why):
    with pytest.raises(error, match=why) as raised:
        build()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
def test_topologies_are_values(name):
    topology = rosters.TOPOLOGIES[name](8)
    again = pickle.loads(pickle.dumps(topology))
    assert again == topology == rosters.TOPOLOGIES[name](8)
    assert hash(again) == hash(topology)
    assert again.fingerprint == topology.fingerprint < 2**64
    assert repr(again) == topology.name
    with pytest.raises(AttributeError):
        setattr(topology, "size", 9)  # noqa: B010
    with pytest.raises(ValueError, match="read-only"):
        topology.matrix()[0, 0] = 1
    assert topology.lazy() != topology
    assert topology != "ring"


def test_fingerprints_differ():
    topologies = [build(n) for build in rosters.TOPOLOGIES.values() for n in (9, 10)]
    assert len({topology.fingerprint for topology in topologies}) == len(topologies)
    assert dec.ring(8).lazy() != dec.ring(8).lazy().lazy()


def test_a_rank_of_many_needs_no_matrix():
    n = 10**6
    start = time.process_time()
    for topology in (dec.ring(n), dec.torus(1000, 1000), dec.exponential(n)):
        assert len(topology.neighbors(12345)) == len(topology.receivers(12345))
    assert dec.one_peer_exponential(n).neighbors(5, 3) == [13]
    assert dec.base_graph(4096).receivers(17, 2) == [21]
    assert dec.ring(n).spectral_gap == pytest.approx(4 * np.pi**2 / (3 * n**2), rel=0.01)
    assert time.process_time() - start < 20
