"""DCD: replicas are the same bits as the models."""

import numpy as np
import pytest

import sparcml
from sparcml import NUQSGD, QSGD, Natural, RandomK, TernGrad
from sparcml import decentralized as dec

from .training import assert_replicas_match, quadratic, random_models, simulate, train

RING = dec.ring(8)
UNBIASED = [QSGD(bits=4), QSGD(bits=8), NUQSGD(bits=4), Natural(), RandomK(0.5)]


def descend(comm, method, x, steps=5):
    rng = np.random.default_rng(comm.rank)
    return train(comm, method, x, lambda x: x - rng.standard_normal(x.shape), steps, 0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compress", UNBIASED, ids=str)
@pytest.mark.parametrize("equal", [True, False], ids=["equal start", "different start"])
def test_replicas_are_the_same_bits_as_the_models(compress, dtype, equal):
    models = random_models(8, 200, dtype)
    models[1:, :7] = -0.0  # zeros of both signs must not differ

    def body(comm):
        x = models[0] if equal else models[comm.rank]
        return descend(comm, dec.DCD(RING, compress), x)

    results = sparcml.launch(body, 8)
    assert_replicas_match([state for _, state in results], [x for x, _ in results])


def test_named_parameters_are_sent_in_one_message():
    def body(comm):
        x = {"w": np.ones((30, 4), np.float32), "b": np.zeros(5, np.float32)}
        method = dec.DCD(dec.ring(4), RandomK(0.5))
        state = method.init(x)
        for _ in range(3):
            gradient = {name: p + comm.rank for name, p in x.items()}
            sent = comm.stats.messages
            x, state = method.step(comm, x, gradient, state, lr=0.1)
        return x, state, comm.stats.messages - sent

    results = sparcml.launch(body, 4)
    flat = [np.concatenate([x["b"], x["w"].ravel()]) for x, _, _ in results]
    assert_replicas_match([state for _, state, _ in results], flat)
    assert results[0][0]["w"].shape == (30, 4)
    assert {messages for _, _, messages in results} == {2}


def test_identity_is_dpsgd():
    plain = quadratic(dec.DPSGD(RING), 50)
    np.testing.assert_allclose(quadratic(dec.DCD(RING), 50), plain, atol=1e-13)


def test_equal_models_are_not_sent_first():
    def body(comm):
        x = np.ones(4096, np.float32)
        method = dec.DCD(RING, QSGD(bits=4))
        method.step(comm, x, x, method.init(x), lr=0.1)
        return comm.stats.bytes

    dense = 2 * 4 * 4096  # to both neighbours
    assert max(sparcml.launch(body, 8)) < dense / 4


def test_four_bits_send_seven_times_less():
    def body(comm, method):
        x = random_models(8, 2**16, np.float32)[0]
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.1)
        comm.stats.reset()
        method.step(comm, x, x, state, lr=0.1)
        return comm.stats.bytes

    plain = sparcml.launch(lambda comm: body(comm, dec.DPSGD(RING)), 8)[0]
    dcd = sparcml.launch(lambda comm: body(comm, dec.DCD(RING, QSGD(bits=4))), 8)[0]
    assert plain / dcd > 7


def test_the_mean_is_kept_on_average():
    models = random_models(4, 64)

    def drift(seed):
        method = dec.DCD(dec.ring(4), TernGrad(clip=None), seed=seed)

        def body(comm):
            return train(comm, method, models[comm.rank], np.zeros_like, 1, 0.1)[0]

        return np.mean(simulate(body, 4), axis=0) - models.mean(0)

    drifts = np.array([drift(seed) for seed in range(40)])
    sigma = drifts.std(0) / np.sqrt(len(drifts))
    assert np.abs(drifts).max() > 0.01  # a single run does move it
    assert (np.abs(drifts.mean(0)) < 5 * sigma + 1e-12).all()


def test_converges_at_four_bits():
    target = np.random.default_rng(0).standard_normal(256)

    def body(comm):
        x = np.zeros(256)
        x, _ = train(comm, dec.DCD(RING, QSGD(bits=4)), x, lambda x: x - target, 100, 0.1)
        return np.abs(x - target).max()

    assert max(simulate(body, 8)) < 1e-3
