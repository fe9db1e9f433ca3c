"""Gradient tracking: the mean of y is the mean gradient, and the limit is the optimum."""

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec

from .training import quadratic, random_models, simulate, train

RING = dec.ring(8)
VARIANTS = pytest.mark.parametrize("adapt_first", [False, True], ids=["DIGing", "ATC"])


@VARIANTS
def test_fixed_point_is_the_optimum(adapt_first):
    models = quadratic(dec.GradientTracking(RING, adapt_first), 120, start=3.5)
    np.testing.assert_allclose(models, 3.5, atol=1e-5)


@VARIANTS
def test_the_mean_of_the_trackers_is_the_mean_of_the_gradients(adapt_first):
    def body(comm):
        x = random_models(8)[comm.rank]
        rng = np.random.default_rng([comm.rank, 1])

        def gradient(x):
            return x * comm.rank + rng.standard_normal(x.shape)

        return train(comm, dec.GradientTracking(RING, adapt_first), x, gradient, 9, 0.01)[1]

    states = simulate(body, 8)
    trackers = np.mean([state["tracker"] for state in states], axis=0)
    gradients = np.mean([state["gradient"] for state in states], axis=0)
    np.testing.assert_allclose(trackers, gradients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("lr", "low", "high"), [(0.2, 0, 1e-3), (0.3, 1e5, np.inf)])
def test_diging_is_stable_below_two_ninths(lr, low, high):
    models = quadratic(dec.GradientTracking(RING), 120, lr=lr, start=3.5)
    assert low <= np.abs(models - 3.5).max() < high


def test_adapt_then_combine_takes_a_learning_rate_of_one():
    models = quadratic(dec.GradientTracking(RING, adapt_then_combine=True), 100, lr=1.0)
    assert np.abs(models - 3.5).max() < 0.1  # DIGing is far away at less than a third


def test_time_varying_graph():
    method = dec.GradientTracking(dec.one_peer_exponential(8), adapt_then_combine=True)
    np.testing.assert_allclose(quadratic(method, 100, start=3.5), 3.5, atol=1e-3)


def test_both_vectors_are_in_one_message():
    def body(comm):
        x = np.ones(100, np.float32)
        method = dec.GradientTracking(RING)
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.1)
        x, state = method.step(comm, x, x, state, lr=0.1)
        comm.stats.reset()
        method.step(comm, x, x, state, lr=0.1)
        return comm.stats.messages, comm.stats.bytes

    assert set(sparcml.launch(body, 8)) == {(2, 2 * (32 + 800))}
