"""Steps and messages until all ranks agree."""

import math

import numpy as np
import pytest

from sparcml import decentralized as dec

from .. import rosters


@pytest.mark.parametrize(
    ("topology", "steps"),
    [
        (dec.ring(25), 653),
        (dec.torus(5, 5), 43),
        (dec.exponential(25), 21),
        (dec.one_peer_exponential(25), 44),
        (dec.base_graph(25), 9),
        (dec.base_graph(25, degree=4), 2),
        (dec.complete(25), 1),
        (dec.ring(1), 0),
    ],
)
def test_steps_to_consensus(topology, steps):
    assert topology.steps_to_consensus(1e-6) == steps


@pytest.mark.parametrize(
    ("topology", "models"),
    [
        (dec.ring(25), 1306),
        (dec.torus(5, 5), 172),
        (dec.exponential(25), 105),
        (dec.one_peer_exponential(25), 44),
        (dec.base_graph(25), 8.6),
        (dec.base_graph(25, degree=4), 8),
    ],
)
def test_models_sent_until_consensus(topology, models):
    sent = topology.steps_to_consensus(1e-6) * topology.messages_per_step
    assert sent == pytest.approx(models, abs=0.05)


@pytest.mark.parametrize(
    "topology", [dec.ring(8), dec.ring(7), dec.torus(2, 4), dec.star(5)], ids=str
)
def test_a_lazy_topology_has_half_the_distance_to_one(topology):
    lazy = topology.lazy()
    assert lazy.lambda_min >= 0
    assert 1 - lazy.lambda_2 == pytest.approx((1 - topology.lambda_2) / 2)
    assert lazy.spectral_gap == pytest.approx((1 - topology.lambda_2) / 2)


@pytest.mark.parametrize("n", [2, 8, 16])
def test_pairs_of_a_hypercube_average_exactly(n):
    """Partner i ^ 2^k in step k: exact as the one-peer graph, and symmetric."""
    ranks, steps = np.arange(n), n.bit_length() - 1
    pairs = [(np.eye(n) + np.eye(n)[ranks ^ (1 << k)]) / 2 for k in range(steps)]
    topology = dec.from_matrix(pairs)
    assert topology.is_symmetric
    assert topology.steps_to_consensus() == steps
    assert topology.spectral_gap == pytest.approx(1)


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
@pytest.mark.parametrize("n", [2, 7, 8])
def test_steps_to_consensus_are_the_fewest(name, n):
    topology = rosters.TOPOLOGIES[name](n)
    if not topology.is_row_stochastic:
        return  # differences do not vanish without push-sum
    product, steps = np.eye(n), 0
    while np.linalg.norm(product - product.mean(0), 2) > 1e-5:
        product = topology.matrix(steps) @ product
        steps += 1
    assert topology.steps_to_consensus(1e-5) == steps


def test_consensus_that_is_never_reached():
    swaps = dec.from_matrix([[0, 1], [1, 0]])
    assert swaps.steps_to_consensus() == math.inf
    assert swaps.spectral_gap == pytest.approx(0)
    turns = dec.from_matrix([np.roll(np.eye(5), 1, 1)] * 2)
    assert turns.steps_to_consensus() == math.inf
    for tol in (0, 1, 2):
        with pytest.raises(ValueError, match=f"tol must be between 0 and 1, got {tol}"):
            swaps.steps_to_consensus(tol)
