"""Naive quantized exchange: a floor that DCD at the same bits does not have."""

import numpy as np
import pytest

from sparcml import QSGD, TopK
from sparcml import decentralized as dec

from .training import quadratic, simulate, train

RING = dec.ring(8)
SMALL = dec.ring(4)


def test_without_a_compressor_it_is_dpsgd():
    plain = quadratic(dec.DPSGD(RING), 20)
    np.testing.assert_allclose(quadratic(dec.NaiveQuantized(RING), 20), plain, atol=1e-12)


def loss_gap(method, steps=130):
    """Return the mean squared error of the mean model, with the same data on all ranks."""
    target = np.random.default_rng(0).standard_normal(512) + 5

    def body(comm):
        x, _ = train(comm, method, np.zeros(512), lambda x: x - target, steps, 0.1)
        return method.mean(comm, x) - target

    error = simulate(body, 4)[0]
    return np.mean(error**2)


def test_it_stalls_at_a_floor_and_dcd_does_not():
    naive = loss_gap(dec.NaiveQuantized(SMALL, QSGD(bits=4)))
    dcd = loss_gap(dec.DCD(SMALL, QSGD(bits=4)))
    assert naive > 1e-3
    assert dcd < 1e-6 * naive


def test_the_floor_is_proportional_to_the_quantization_error():
    floors = [loss_gap(dec.NaiveQuantized(SMALL, QSGD(bits=bits)), 80) for bits in (4, 6)]
    # Steps between levels of 4 and 6 bits differ by a factor of 31 / 7.
    assert floors[0] / floors[1] == pytest.approx((31 / 7) ** 2, rel=0.5)


def test_sparsified_models_shrink():
    method = dec.NaiveQuantized(RING, TopK(k=1))
    models = quadratic(method, 1)  # one value: TopK keeps it
    np.testing.assert_allclose(models, quadratic(dec.DPSGD(RING), 1))
    assert not method.keeps_mean
