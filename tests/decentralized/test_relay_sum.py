"""RelaySum: exact sums on trees after as many rounds as the diameter."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec
from sparcml.decentralized.methods.relay_sum import relay

from .training import chain, mix_only, quadratic, train

INPUTS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
COUNTS = [[2, 3, 3, 3, 2], [3, 4, 5, 4, 3], [4, 5, 5, 5, 4], [5] * 5, [5] * 5]


def test_counts_and_sums_of_a_chain():
    tree = chain(5)

    def body(comm):
        x, rounds = INPUTS[comm.rank : comm.rank + 1], []
        received: dict[int, Any] = {}
        for _ in range(5):
            received = relay(comm, tree.neighbors(comm.rank), x, received)
            total = np.sum(list(received.values()), axis=0)
            rounds.append((total[0] + x[0], total[1] + 1))
        return rounds

    rounds = np.array(sparcml.launch(body, 5)).transpose(1, 2, 0)  # round, what, rank
    np.testing.assert_array_equal(rounds[:, 1], COUNTS)
    np.testing.assert_array_equal(rounds[3:, 0], 31)
    assert not (rounds[2, 0] == 31).all()


def binary_tree(n):
    W = np.zeros((n, n))
    for i in range(1, n):
        W[i, (i - 1) // 2] = W[(i - 1) // 2, i] = 0.25
    W[np.diag_indices(n)] = 1 - W.sum(1)
    return dec.from_matrix(W)


@pytest.mark.parametrize(
    "tree", [chain(8), binary_tree(8), dec.star(8)], ids=["chain", "binary", "star"]
)
def test_different_data_cause_no_bias(tree):
    np.testing.assert_allclose(
        quadratic(dec.RelaySum(tree), 80, lr=0.3, start=3.5), 3.5, atol=1e-5
    )


def test_different_models_are_averaged_first():
    start = INPUTS[:, None]
    models, _ = mix_only(dec.RelaySum(chain(5)), start, 3)
    np.testing.assert_allclose(models, 6.2, atol=1e-14)


def test_without_an_average_first_the_mean_moves():
    start = INPUTS[:, None]
    models, _ = mix_only(dec.RelaySum(chain(5), average_start=False), start, 60)
    np.testing.assert_allclose(models, 6.430222, atol=1e-5)


def test_equal_models_stay_without_gradients():
    models, _ = mix_only(dec.RelaySum(chain(5)), np.full((5, 3), 0.1, np.float32), 10)
    np.testing.assert_allclose(models, 0.1, rtol=1e-6)


def test_a_gradient_travels_one_edge_per_step():
    def body(comm):
        method, x = dec.RelaySum(chain(5)), np.zeros(1)
        x, state = train(comm, method, x, np.zeros_like, 6, 1.0)
        impulse = np.array([float(comm.rank == 0)])
        x, state = method.step(comm, x, impulse, state, lr=1.0)
        seen = [x[0]]
        for _ in range(4):
            x, state = method.step(comm, x, np.zeros(1), state, lr=1.0)
            seen.append(x[0])
        return seen

    seen = np.array(sparcml.launch(body, 5))
    # Rank i averages the model of rank 0 for the first time after max(i - 1, 0) more steps.
    for rank in range(5):
        first = max(rank - 1, 0)
        assert not seen[rank, :first].any()
        assert seen[rank, first] < 0
    assert seen[0, 0] == seen[1, 0] == pytest.approx(-0.2)


def test_graphs_with_a_cycle_are_refused():
    with pytest.raises(
        ValueError, match=r"RelaySum: topology must be a tree, got ring\(5\)"
    ):
        dec.RelaySum(dec.ring(5))
