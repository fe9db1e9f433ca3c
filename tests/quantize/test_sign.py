"""Sign: the scaled form of error feedback, and plain signs."""

import numpy as np
import pytest

from sparcml import Sign


def coded(quantizer, values):
    return quantizer.decode(quantizer.encode(values))


def vector(size=1000, seed=0):
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_the_identity_of_the_scaled_form(seed):
    """||p - m||^2 = (1 - ||p||_1^2 / (d ||p||^2)) ||p||^2, for any p."""
    p = vector(500, seed) ** (1 + 2 * (seed % 2))
    m = coded(Sign(), p).astype(np.float64)
    squares, ones = (p.astype(np.float64) ** 2).sum(), np.abs(p).sum(dtype=np.float64)
    delta = ones**2 / (p.size * squares)
    assert 1 / p.size <= delta <= 1
    assert ((p - m) ** 2).sum() == pytest.approx((1 - delta) * squares, rel=1e-5)


def test_the_residual_stays_bounded():
    """||e_t||^2 <= 4 (1 - delta) / delta^2 gamma^2 G^2 with the smallest delta seen."""
    e, delta, largest = np.zeros(100, np.float32), 1.0, 0.0
    for step in range(300):
        g = vector(100, step)
        largest = max(largest, float((g**2).sum()))
        p = e + g
        delta = min(delta, float(np.abs(p).sum() ** 2 / (p.size * (p**2).sum())))
        e = p - coded(Sign(), p)
        assert (e**2).sum() <= 4 * (1 - delta) / delta**2 * largest


def test_plain_signs():
    values = np.array([0.1, -3, 0, -0.0, 1e-45, -1e-45, 2e38], np.float32)
    signs = np.array([1, -1, 1, 1, 1, -1, 1], np.float32)
    np.testing.assert_array_equal(coded(Sign(scale=1.0), values), signs)
    np.testing.assert_array_equal(coded(Sign(scale=0.5), values), signs / 2)


def test_buckets_have_their_own_scales():
    values = vector(1000).reshape(10, 100) * np.arange(10)[:, None]
    scales = np.abs(coded(Sign(bucket=100), values))
    means = np.abs(values).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scales, np.broadcast_to(means, (10, 100)), rtol=1e-6)


@pytest.mark.parametrize("size", [0, 1, 8, 9, 1000])
def test_a_bit_a_value_and_a_scale(size):
    code = Sign().encode(vector(size))
    assert code.nbytes == -(-size // 8) + 4 * (size > 0) == Sign().nbytes(size)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_what_is_no_number_never_becomes_one(bad, scale):
    values = vector(300)
    values[120] = bad
    sign = Sign(bucket=100, scale=scale, nonfinite="propagate")
    decoded = coded(sign, values).reshape(3, 100)
    assert not np.isfinite(decoded[1]).any()
    assert np.isfinite(decoded[[0, 2]]).all()


def test_bad_settings():
    with pytest.raises(ValueError, match="bucket must be from 1 to"):
        Sign(bucket=-1)
    for scale in (0.0, -1.0, np.nan, np.inf, 1e-60):
        with pytest.raises(ValueError, match="scale must be positive"):
            Sign(scale=scale)


def descend(quantizer, feedback):
    """One large slope and noise of the other sign, three times as often: the mean decides."""
    rng = np.random.default_rng(3)
    x, residual = np.array([1.0], np.float32), np.zeros(1, np.float32)
    for _ in range(3000):
        gradient = np.array(
            [4.0 if rng.random() < 0.25 else -1.0], np.float32
        )  # 0.25 on average
        p = np.float32(0.002) * gradient + residual
        m = coded(quantizer, p)
        if not feedback:
            m = m / np.abs(m) * np.float32(0.002)
        residual = p - m if feedback else residual
        x = x - m
    return float(x[0])


def test_signs_alone_go_the_wrong_way_and_feedback_mends_it():
    assert descend(Sign(), feedback=False) > 1.5
    assert descend(Sign(), feedback=True) < 0
