"""Spectral gaps, weights and rates of the topologies, against known values."""

import math

import networkx as nx
import numpy as np
import pytest

from sparcml import decentralized as dec

from .. import rosters

# 1 - rho: size, ring, torus and its sides, star, exponential.
TABLE = [
    (4, 0.66667, 0.66667, (2, 2), 0.25, 0.66667),
    (8, 0.19526, 0.5, (2, 4), 0.125, 0.5),
    (16, 0.05075, 0.4, (4, 4), 0.0625, 0.4),
    (25, 0.02094, 0.27639, (5, 5), 0.04, 0.48914),
    (32, 0.01281, 0.11716, (4, 8), 0.03125, 0.33333),
    (64, 0.00321, 0.11716, (8, 8), 0.01563, 0.28571),
    (112, 0.00105, 0.03961, (8, 14), 0.00893, 0.25),
]


def average(n):
    return np.full((n, n), 1 / n)


@pytest.mark.parametrize(("n", "ring", "torus", "sides", "star", "exponential"), TABLE)
def test_table_of_gaps(n, ring, torus, sides, star, exponential):
    for topology, gap in (
        (dec.ring(n), ring),
        (dec.torus(*sides), torus),
        (dec.star(n), star),
        (dec.exponential(n), exponential),
        (dec.complete(n), 1.0),
    ):
        assert topology.size == n
        assert topology.spectral_gap == pytest.approx(gap, abs=6e-6)
        assert 1 - topology.rho == pytest.approx(gap, abs=6e-6)


@pytest.mark.parametrize(("n", "gap"), [(8, 0.1953), (16, 0.05075), (112, 0.001049)])
def test_gaps_of_the_ring(n, gap):
    topology = dec.ring(n)
    assert topology.spectral_gap == pytest.approx(gap, rel=5e-4)
    eigenvalues = (1 + 2 * np.cos(2 * np.pi * np.arange(n) / n)) / 3
    found = np.linalg.eigvalsh(topology.matrix())
    np.testing.assert_allclose(found, np.sort(eigenvalues), atol=1e-12)
    assert topology.lambda_2 == pytest.approx(1 - gap, abs=1e-4)


@pytest.mark.parametrize(
    ("topology", "smallest"),
    [
        (dec.ring(8), -1 / 3),
        (dec.torus(2, 4), -0.5),
        (dec.torus(4, 4), -0.6),
        (dec.torus(8, 8), -0.6),
        (dec.torus(2, 2, 2), -0.5),  # the hypercube of dimension 3: (1 - d) / (1 + d)
        (dec.star(9), 0.0),
    ],
)
def test_smallest_eigenvalue(topology, smallest):
    assert topology.lambda_min == pytest.approx(smallest, abs=1e-9)
    lazy = topology.lazy()
    assert lazy.lambda_min == pytest.approx((1 + smallest) / 2, abs=1e-9)
    assert lazy.lambda_min >= 0
    assert lazy.lambda_2 == pytest.approx((1 + topology.lambda_2) / 2)
    np.testing.assert_allclose(
        lazy.matrix(), (np.eye(topology.size) + topology.matrix()) / 2
    )


@pytest.mark.parametrize("n", [*range(2, 40), 112, 1000, 4096])
def test_gap_of_the_exponential_graph(n):
    topology, t = dec.exponential(n), math.ceil(math.log2(n))
    assert topology.degree == len(topology.neighbors(0)) == t
    if n % 2 == 0:
        assert topology.spectral_gap == pytest.approx(2 / (1 + t), abs=1e-12)
    else:
        assert topology.spectral_gap > 2 / (1 + t)


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_hypercube_has_the_gap_of_the_exponential_graph(dimension):
    cube = dec.torus(*[2] * dimension)
    assert cube.degree == dimension
    assert cube.spectral_gap == pytest.approx(dec.exponential(2**dimension).spectral_gap)


def test_torus_side_of_two_has_one_neighbour():
    assert dec.torus(2, 4).neighbors(0) == [1, 3, 4]
    assert dec.torus(2, 2).neighbors(3) == [1, 2]
    assert dec.torus(1, 5) == dec.torus(1, 5)
    np.testing.assert_array_equal(dec.torus(1, 5).matrix(), dec.ring(5).matrix())


def test_metropolis_weights():
    graph = nx.Graph([(0, 1), (0, 2), (0, 3), (3, 4)])
    topology = dec.from_networkx(graph)
    diagonal = [0.25, 0.75, 0.75, 0.416667, 0.666667]
    np.testing.assert_allclose(np.diag(topology.matrix()), diagonal, atol=1e-6)
    assert topology.spectral_gap == pytest.approx(0.138075, abs=1e-6)
    assert topology.is_symmetric
    assert topology.is_doubly_stochastic
    laplacian = nx.laplacian_matrix(graph, nodelist=range(5)).toarray()
    by_degree = dec.from_matrix(np.eye(5) - laplacian / 4)  # 1 + the largest degree
    assert by_degree.spectral_gap == pytest.approx(0.129701, abs=1e-6)


def test_weights_of_the_star():
    own, weights = dec.star(5).weights(0)
    assert own == pytest.approx(1 / 5)
    assert weights == dict.fromkeys(range(1, 5), 1 / 5)
    own, weights = dec.star(5).weights(3)
    assert own == pytest.approx(4 / 5)
    assert weights == {0: 1 / 5}
    uniform = dec.star(5, weights="uniform")
    assert uniform.weights(3) == (1 / 2, {0: 1 / 2})
    assert uniform.is_row_stochastic
    assert not uniform.is_symmetric
    assert not uniform.is_doubly_stochastic
    assert dec.star(5).degree == 4
    assert dec.star(5).messages_per_step == pytest.approx(8 / 5)


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_matrices_neighbours_and_weights_agree(name, n):
    topology = rosters.TOPOLOGIES[name](n)
    assert topology.size == n
    matrices = [topology.matrix(step) for step in range(topology.period)]
    assert topology.is_symmetric == all((W == W.T).all() for W in matrices)
    for axis, stated in (
        (1, topology.is_row_stochastic),
        (0, topology.is_column_stochastic),
    ):
        assert stated == all(np.abs(W.sum(axis) - 1).max() < 1e-9 for W in matrices)
    for step in (0, topology.period - 1, topology.period + 1):
        W = topology.matrix(step)
        np.testing.assert_array_equal(W, matrices[step % topology.period])
        assert (W >= 0).all()
        for rank in range(n):
            others = [j for j in range(n) if W[rank, j] and j != rank]
            assert topology.neighbors(rank, step) == others
            to = [i for i in range(n) if W[i, rank] and i != rank]
            assert sorted(topology.receivers(rank, step)) == to
            own, weights = topology.weights(rank, step)
            assert own == W[rank, rank]
            assert weights == {j: W[rank, j] for j in others}
            assert list(weights) == others
    sent = [len(topology.receivers(r, s)) for s in range(topology.period) for r in range(n)]
    assert topology.degree == max(sent)
    assert topology.messages_per_step == pytest.approx(np.mean(sent))


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
def test_spectrum_is_that_of_the_product(name):
    topology = rosters.TOPOLOGIES[name](9)
    product = np.eye(9)
    for step in range(topology.period):
        product = topology.matrix(step) @ product
    assert topology.rho == pytest.approx(np.linalg.norm(product - 1 / 9, 2), abs=1e-9)
    moduli = np.sort(np.abs(np.linalg.eigvals(product)))
    assert topology.spectral_gap == pytest.approx(1 - moduli[-2], abs=1e-6)


@pytest.mark.parametrize("n", [8, 16, 25])
def test_powers_approach_the_average_at_the_rate_of_lambda_2(n):
    for topology in (dec.ring(n), dec.star(n), dec.torus(4, n) if n < 9 else dec.ring(n)):
        W, size = topology.matrix(), topology.size
        rate = max(abs(topology.lambda_2), abs(topology.lambda_min))
        errors = [
            np.linalg.norm(np.linalg.matrix_power(W, t) - average(size), 2)
            for t in (1, 5, 20, 60)
        ]
        np.testing.assert_allclose(errors, [rate**t for t in (1, 5, 20, 60)], rtol=1e-9)


def test_mixing_preserves_the_mean_if_columns_add_up_to_one():
    x = np.random.default_rng(0).standard_normal((12, 30))
    for build in rosters.TOPOLOGIES.values():
        topology = build(12)
        mixed = x
        for step in range(2 * topology.period):
            mixed = topology.matrix(step) @ mixed
        kept = np.allclose(mixed.mean(0), x.mean(0), rtol=0, atol=1e-12)
        assert kept == topology.is_column_stochastic


def test_star_has_a_hub_and_the_complete_graph_is_an_average():
    np.testing.assert_array_equal(dec.complete(7).matrix(), average(7))
    assert dec.complete(7).neighbors(3) == [0, 1, 2, 4, 5, 6]
    assert dec.star(6).neighbors(0) == [1, 2, 3, 4, 5]
    assert dec.star(6).neighbors(4) == [0]
