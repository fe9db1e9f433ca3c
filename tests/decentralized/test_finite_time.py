"""Topologies whose period is a full average: one-peer exponential and base graphs."""

import numpy as np
import pytest

from sparcml import decentralized as dec

STEPS = {  # for degrees 1, 2, 3, 4
    5: (5, 3, 3, 1),
    6: (4, 2, 2, 2),
    7: (5, 4, 3, 3),
    25: (9, 6, 5, 2),
    100: (11, 8, 6, 3),
    112: (9, 8, 5, 5),
    1000: (16, 12, 9, 5),
    1023: (19, 12, 10, 9),
}


def mixed(topology, x, steps):
    """Apply the steps to the rows of x by neighbours and weights, without a matrix."""
    for step in steps:
        new = np.empty_like(x)
        for rank in range(topology.size):
            own, weights = topology.weights(rank, step)
            new[rank] = own * x[rank] + sum(w * x[j] for j, w in weights.items())
        x = new
    return x


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_base_graphs_are_exact(degree):
    for n in range(1, 65):
        topology = dec.base_graph(n, degree)
        product = np.eye(n)
        for step in range(topology.period):
            W = topology.matrix(step)
            np.testing.assert_array_equal(W, W.T)
            assert (W >= 0).all()
            product = W @ product
        np.testing.assert_allclose(product, 1 / n, rtol=0, atol=1e-15)
        assert topology.degree <= degree
        assert topology.is_doubly_stochastic
        assert topology.period <= 2 * np.log(n) / np.log(degree + 1) + 2


@pytest.mark.parametrize("n", STEPS)
def test_steps_of_base_graphs(n):
    periods = tuple(dec.base_graph(n, degree).period for degree in (1, 2, 3, 4))
    assert periods == STEPS[n]


@pytest.mark.parametrize(("n", "degree"), [(112, 1), (500, 2), (1000, 3), (1023, 1)])
def test_large_base_graphs_are_exact(n, degree):
    topology = dec.base_graph(n, degree)
    x = np.random.default_rng(n).standard_normal((n, 3))
    result = mixed(topology, x, range(topology.period))
    np.testing.assert_allclose(result, np.tile(x.mean(0), (n, 1)), rtol=0, atol=1e-13)


def test_base_graph_of_five_ranks():
    topology = dec.base_graph(5)
    edges = []
    for step in range(5):
        W = topology.matrix(step)
        pairs = [(i, j) for i in range(5) for j in range(i + 1, 5) if W[i, j]]
        edges.append({pair: W[pair] for pair in pairs})
    half = [{(0, 1): 0.5, (2, 3): 0.5}, {(0, 2): 0.5, (1, 3): 0.5}]
    assert edges == [*half, {(3, 4): 0.8, (0, 1): 0.5}, *half]


def test_fewest_factors_are_found():
    # Greedy factors of 216 up to 8 are 8, 3, 3, 3; three factors of 6 suffice.
    assert dec.base_graph(216, degree=7).period == 3


@pytest.mark.parametrize("t", range(1, 8))
def test_one_peer_exponential_is_exact_in_any_order(t):
    topology = dec.one_peer_exponential(2**t)
    assert topology.period == t
    assert topology.degree == 1
    for seed in range(3):
        product = np.eye(2**t)
        for step in np.random.default_rng(seed).permutation(t):
            product = topology.matrix(int(step)) @ product
        np.testing.assert_array_equal(product, 1 / 2**t)
    assert topology.rho == pytest.approx(0, abs=1e-15)
    assert topology.spectral_gap == pytest.approx(1)


def test_one_peer_exponential_of_1024_ranks_is_exact():
    topology = dec.one_peer_exponential(1024)
    x = np.random.default_rng(0).integers(-99, 99, (1024, 2)) * 1024.0
    result = mixed(topology, x, range(10))
    np.testing.assert_array_equal(result, np.tile(x.mean(0), (1024, 1)))
    assert topology.rho == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("n", "rho"), [(3, 0.25), (6, 0.2165), (12, 0.2091), (25, 0.1921), (112, 0.1209)]
)
def test_one_peer_exponential_of_other_sizes(n, rho):
    assert dec.one_peer_exponential(n).rho == pytest.approx(rho, abs=6e-5)
    assert dec.one_peer_exponential(n).neighbors(n - 1, 1) == [1]
