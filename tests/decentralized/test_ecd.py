"""ECD: estimates that all ranks compute alike."""

import numpy as np
import pytest

import sparcml
from sparcml import QSGD
from sparcml import decentralized as dec

from .training import assert_replicas_match, quadratic, random_models, simulate, train

RING = dec.ring(8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimates_are_the_same_bits_everywhere(dtype):
    models = random_models(8, 100, dtype)

    def body(comm):
        method = dec.ECD(RING, QSGD(bits=8))
        return train(comm, method, models[comm.rank], lambda x: x - comm.rank, 6, 0.05)

    states = [state for _, state in sparcml.launch(body, 8)]
    assert_replicas_match(states, [state["estimate"] for state in states])


def test_identity_is_exact():
    def body(comm):
        x = random_models(8)[comm.rank]
        return train(comm, dec.ECD(RING), x, lambda x: x - comm.rank, 60, 0.05)

    for x, state in simulate(body, 8):
        np.testing.assert_allclose(state["estimate"], x, rtol=1e-12)
    plain = quadratic(dec.DPSGD(RING), 40)
    np.testing.assert_allclose(quadratic(dec.ECD(RING), 40), plain, atol=1e-11)


def test_the_error_of_the_estimate_falls_as_one_over_t():
    """A fixed step between levels has errors of constant variance, as the theorem assumes."""
    models = np.ones((4, 2000))
    models[:, 0] = 1000  # sets the scale of the bucket, so that z has a fixed grid

    def errors(steps):
        def body(comm):
            method = dec.ECD(dec.complete(4), QSGD(bits=8, bucket=None))
            x, state = train(comm, method, models[comm.rank], np.zeros_like, steps, 0.1)
            return np.mean((state["estimate"] - x)[1:] ** 2)

        return np.mean(simulate(body, 4))

    bound = (1000 / 127) ** 2 / 4  # variance of rounding to a grid
    for steps in (4, 16, 64):
        assert errors(steps) < 2 * bound / steps


def test_converges_at_eight_bits():
    target = np.random.default_rng(0).standard_normal(64)

    def body(comm):
        x = np.zeros(64)
        x, _ = train(comm, dec.ECD(RING, QSGD(bits=8)), x, lambda x: x - target, 100, 0.1)
        return np.abs(x - target).max()

    assert max(simulate(body, 8)) < 0.02
