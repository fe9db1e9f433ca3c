"""Choco: the mean is kept for any compressor."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, BlockTopK, OneBit, RandomK, Sign, TopK
from sparcml import decentralized as dec
from sparcml.decentralized.methods import choco
from sparcml.quantize.base import QUANTIZERS as REGISTERED

from ..rosters import SPARSIFIERS
from .training import (
    assert_replicas_match,
    mix_only,
    quadratic,
    random_models,
    simulate,
    spread,
    train,
)

RING = dec.ring(8)
QUANTIZERS = [q for cls in REGISTERED.values() if cls.selectable for q in cls.examples()]
COMPRESSORS: dict[str, Any] = {**SPARSIFIERS, **{str(q): q for q in QUANTIZERS}}


@pytest.mark.parametrize("name", COMPRESSORS)
def test_the_mean_is_kept_and_replicas_match_for_any_compressor(name):
    models = random_models(4, 96)
    method = dec.Choco(dec.ring(4), COMPRESSORS[name], gamma=0.05)
    mixed, states = mix_only(method, models, 8)
    np.testing.assert_allclose(mixed.mean(0), models.mean(0), atol=1e-12)
    assert_replicas_match(states, [state["estimate"] for state in states])


@pytest.mark.parametrize(
    "compress", [TopK(0.1), BlockTopK(k=2, block=8), TopK(1.0)], ids=str
)
def test_large_models_are_mixed_during_the_exchange_with_the_same_bits(
    compress, monkeypatch
):
    """Only entries that arrived are mixed again."""

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        x = rng.standard_normal(160)
        method = dec.Choco(RING, compress, gamma=0.1)
        state, trace = method.init(x), []
        for _ in range(4):
            g = rng.standard_normal(160)
            x, state = method.step(comm, x, g, state, 0.1, overwrite_state=True)
            trace += [x.copy(), state["estimate"].copy()]
        return np.concatenate(trace)

    plain = sparcml.launch(body, 8)
    monkeypatch.setattr(choco, "OVERLAPPED", 0)
    overlapped = sparcml.launch(body, 8)
    np.testing.assert_array_equal(overlapped, plain)


def test_identity_with_gamma_1_is_dpsgd():
    plain = quadratic(dec.DPSGD(RING, adapt_then_combine=True), 50)
    np.testing.assert_allclose(quadratic(dec.Choco(RING, gamma=1), 50), plain, atol=1e-13)


@pytest.mark.parametrize(
    ("compress", "gamma"),
    [
        (TopK(0.1), 0.2),
        (TopK(0.02), 0.04),
        (RandomK(0.2), 0.1),
        (Sign(), 0.4),
        (OneBit(), 0.4),
        (QSGD(bits=2), 0.3),
        (QSGD(bits=4), 1.0),
    ],
    ids=str,
)
def test_models_approach_the_mean(compress, gamma):
    models = random_models(4, 200)
    mixed, _ = mix_only(dec.Choco(dec.ring(4), compress, gamma=gamma), models, 60)
    assert spread(mixed) < 0.45 * spread(models)
    np.testing.assert_allclose(mixed.mean(0), models.mean(0), atol=1e-12)


def test_the_error_shrinks_at_least_as_the_theorem_states():
    models = random_models(8)
    probe = dec.Choco(RING, TopK(k=4))
    gamma = probe.theoretical_gamma(4 / 20)
    assert gamma == pytest.approx(7e-4, rel=0.1)
    steps, gap = 40, RING.spectral_gap
    mixed, states = mix_only(dec.Choco(RING, TopK(k=4), gamma=gamma), models, steps)
    estimates = np.array([state["estimate"] for state in states])
    error = spread(mixed) ** 2 + ((mixed - estimates) ** 2).sum(1).mean()
    assert error <= (1 - gap**2 * (4 / 20) / 82) ** steps * spread(models) ** 2


def test_top_1_percent_sends_30_times_less():
    def body(comm, method):
        x = random_models(4, 2**16, np.float32)[0]
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.1)
        comm.stats.reset()
        method.step(comm, x, x, state, lr=0.1)
        return comm.stats.bytes

    ring = dec.ring(4)
    plain = sparcml.launch(lambda comm: body(comm, dec.DPSGD(ring)), 4)[0]
    choco = sparcml.launch(lambda comm: body(comm, dec.Choco(ring, TopK(0.01))), 4)[0]
    assert plain / choco > 30


def test_trains_where_dcd_would_need_unbiased_compression():
    target = np.random.default_rng(0).standard_normal(200)

    def body(comm):
        method = dec.Choco(RING, TopK(0.1), gamma=0.2)
        offset = np.full(200, comm.rank - 3.5)  # different data, of mean zero

        def gradient(x):
            return x - target - offset

        x, _ = train(comm, method, np.zeros(200), gradient, 100, 0.02)
        return method.mean(comm, x)

    mean = simulate(body, 8)[0]
    np.testing.assert_allclose(mean, target * (1 - 0.98**100), atol=1e-9)
