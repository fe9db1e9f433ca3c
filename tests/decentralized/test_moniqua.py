"""Moniqua: errors within delta B, and a bound that is checked."""

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec
from sparcml.decentralized.methods.moniqua import pack, unpack

from .training import mix_only, quadratic, spread, train

PAIR = dec.ring(2)


@pytest.mark.parametrize(
    ("bits", "modulus", "error"), [(1, 4, 1), (2, 2.6667, 1 / 3), (8, 2.00784, 0.003922)]
)
def test_error_is_at_most_delta_times_the_modulus(bits, modulus, error):
    method = dec.Moniqua(PAIR, theta=1.0, bits=bits)
    assert method.modulus == pytest.approx(modulus, abs=1e-4)
    assert method.delta * method.modulus == pytest.approx(error, abs=1e-6)
    rng = np.random.default_rng(bits)
    base = rng.uniform(-50, 50, 4000)
    models = np.array([base, base + rng.uniform(-0.999, 0.999, 4000)])
    mixed, _ = mix_only(method, models, 1)
    # Both ends move by half the difference of two estimates, each within the error.
    exact = models.mean(0)
    assert np.abs(mixed - exact).max() <= error * (1 + 1e-9)
    assert np.abs(mixed - exact).max() > 0.8 * error
    np.testing.assert_allclose(mixed.mean(0), exact, atol=1e-13)


@pytest.mark.parametrize("distance", [1.5, 2.5, 100.0])
def test_a_violated_bound_raises_on_all_ranks(distance):
    def body(comm):
        x = np.full(50, 0.3)
        x[17] += distance * (comm.rank == 1)
        train(comm, dec.Moniqua(dec.ring(4), theta=1.0), x, np.zeros_like, 1, 0.1)

    with pytest.raises(
        ValueError, match="differ by less than theta = 1, got larger differ"
    ):
        sparcml.launch(body, 4)


@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_codes(bits):
    codes = np.random.default_rng(bits).integers(0, 2**bits, 37).astype(np.uint8)
    words = pack(codes, bits, 0xFEDCBA98)
    assert words.nbytes == 4 + 4 * -(-37 * bits // 32)
    unpacked, checksum = unpack(words, 37, bits)
    np.testing.assert_array_equal(unpacked, codes)
    assert checksum == 0xFEDCBA98


def test_mixing_approaches_the_mean_down_to_the_error():
    rng = np.random.default_rng(0)
    models = rng.uniform(0, 0.5, (8, 100))
    mixed, _ = mix_only(dec.Moniqua(dec.ring(8), theta=1.0, bits=8), models, 60)
    np.testing.assert_allclose(mixed.mean(0), models.mean(0), atol=1e-13)
    assert spread(mixed) < 0.1 * spread(models)
    assert np.abs(mixed - models.mean(0)).max() < 0.02


def test_trains_with_the_bias_of_dpsgd():
    plain = quadratic(dec.DPSGD(dec.ring(8)), 60)
    models = quadratic(dec.Moniqua(dec.ring(8), theta=2.0, bits=8), 60)
    np.testing.assert_allclose(models, plain, atol=0.05)


def test_eight_bits_send_four_times_less():
    def body(comm):
        x = np.ones(10_000, np.float32)
        method = dec.Moniqua(PAIR, theta=1.0)
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.1)
        comm.stats.reset()
        method.step(comm, x, x, state, lr=0.1)
        return comm.stats.bytes

    assert sparcml.launch(body, 2)[0] <= 10_000 + 4 + 32


@pytest.mark.parametrize("theta", [0.0, -1.0, np.inf])
def test_theta_must_be_positive(theta):
    with pytest.raises(ValueError, match="Moniqua: theta must be positive"):
        dec.Moniqua(PAIR, theta)


def test_bits_must_fit_in_a_byte():
    with pytest.raises(ValueError, match="Moniqua: bits must be from 1 to 8, got 9"):
        dec.Moniqua(PAIR, 1.0, bits=9)
