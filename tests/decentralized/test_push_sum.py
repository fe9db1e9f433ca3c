"""Push-sum: masses, and the mean on a directed graph."""

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec

from .training import mix_only, random_models, simulate, train

# 0 sends to 0, 1, 2; 1 to 1, 2; 2 to 2, 0; each in equal parts.
A = np.array([[1 / 3, 0, 1 / 2], [1 / 3, 1 / 2, 0], [1 / 3, 1 / 2, 1 / 2]])
DIRECTED = dec.from_matrix(A, stochastic="columns")
START = np.array([[0.0], [3.0], [9.0]])


def weights(states):
    return [float(state["weight"]) for state in states]


def test_first_step():
    models, _ = mix_only(dec.PushSum(DIRECTED), START, 1)
    np.testing.assert_allclose(models[:, 0], [5.4, 1.8, 4.5], atol=1e-14)


def test_masses_and_limits():
    for steps in (1, 2, 5, 60):
        models, states = mix_only(dec.PushSum(DIRECTED), START, steps)
        assert sum(weights(states)) == pytest.approx(3, abs=1e-13)
        assert np.dot(weights(states), models[:, 0]) == pytest.approx(12, abs=1e-12)
    np.testing.assert_allclose(weights(states), [1, 2 / 3, 4 / 3], atol=1e-12)
    np.testing.assert_allclose(models, 4, atol=1e-12)


def test_plain_mixing_by_rows_ends_elsewhere():
    rows = dec.from_matrix(A.T)

    def body(comm):
        x = START[comm.rank]
        for step in range(80):
            x = comm.neighbor_allreduce(x, rows, step)
        return x[0]

    np.testing.assert_allclose(simulate(body, 3), 14 / 3, atol=1e-9)


def test_directed_graph_that_changes_from_step_to_step():
    shift = np.roll(np.eye(5), 1, axis=0)
    steps = [(np.eye(5) + shift) / 2, (np.eye(5) + shift @ shift) / 2]
    steps[0] = steps[0].copy()
    steps[0][:, 0] = [0.4, 0.2, 0.2, 0.2, 0]  # not doubly stochastic
    topology = dec.from_matrix(steps, stochastic="columns")
    start = random_models(5)
    models, states = mix_only(dec.PushSum(topology), start, 100)
    np.testing.assert_allclose(models, np.tile(start.mean(0), (5, 1)), atol=1e-12)
    assert sum(weights(states)) == pytest.approx(5)


def test_trains_to_the_optimum_of_the_mean_loss():
    method = dec.PushSum(DIRECTED)

    def body(comm):
        target = START[comm.rank]
        x, state = np.zeros(1), method.init(np.zeros(1))
        for step in range(400):
            x, state = method.step(comm, x, x - target, state, lr=1 / (step + 10))
        return x[0], method.mean(comm, x, state)[0]

    for model, mean in simulate(body, 3):
        assert model == pytest.approx(4, abs=0.15)
        assert mean == pytest.approx(4, abs=0.15)


def test_mean_is_weighted_and_needs_the_state():
    def body(comm):
        method, x = dec.PushSum(DIRECTED), START[comm.rank]
        x, state = train(comm, method, x, np.zeros_like, 2, 0.1)
        with pytest.raises(ValueError, match="mean: state must be that of this rank"):
            method.mean(comm, x)
        return method.averaged(comm, x, state)[0]

    np.testing.assert_allclose(sparcml.launch(body, 3), 4, atol=1e-13)
