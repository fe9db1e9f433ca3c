"""TernGrad: what the paper says of it."""

import math

import numpy as np
import pytest

from sparcml import QSGD, TernGrad

from .vectors import VECTORS, draws

TRIALS = 2000


@pytest.mark.parametrize("name", VECTORS)
def test_without_clipping_it_is_qsgd_with_one_level(name):
    """The same distribution; in fact the same draws."""
    plain, qsgd = TernGrad(clip=None), QSGD(levels=1, bucket=None)
    for seed in range(20):
        vector = VECTORS[name]
        assert bytes(plain.encode(vector, seed)) == bytes(qsgd.encode(vector, seed))


@pytest.mark.parametrize("name", VECTORS)
def test_length_and_variance(name):
    vector = VECTORS[name].astype(np.float64)
    rows = draws(TernGrad(clip=None), VECTORS[name], TRIALS)
    scale = np.abs(vector).max()
    due = scale * np.abs(vector).sum()
    slack = 1e-6 * due
    lengths, errors = (rows**2).sum(1), ((rows - vector) ** 2).sum(1)
    for seen, expected in ((lengths, due), (errors, due - vector @ vector)):
        assert abs(seen.mean() - expected) < 5 * seen.std() / np.sqrt(TRIALS) + slack


@pytest.mark.parametrize("count_zeros", [False, True])
@pytest.mark.parametrize("name", VECTORS)
def test_the_mean_is_the_clipped_value(name, count_zeros):
    vector = VECTORS[name].astype(np.float64)
    rows = draws(TernGrad(count_zeros=count_zeros), VECTORS[name], TRIALS)
    sigma = (vector if count_zeros else vector[vector != 0]).std()
    limit = 2.5 * sigma if sigma > 1e-9 else np.inf
    clipped = np.clip(vector, -limit, limit)
    scale = np.abs(clipped).max()
    np.testing.assert_allclose(np.unique(np.abs(rows))[-1], scale, rtol=1e-6)
    for way in (np.ones_like(vector), np.sign(vector), vector / np.abs(vector).max()):
        seen = rows @ way
        slack = 5 * seen.std() / np.sqrt(TRIALS) + 2**-21 * np.abs(clipped) @ np.abs(way)
        assert abs(seen.mean() - clipped @ way) < slack


def test_values_are_ternary_and_the_bytes_few():
    vector = np.random.default_rng(0).standard_normal(1001)
    code = TernGrad().encode(vector)
    assert code.nbytes == 4 + 251
    back = TernGrad().decode(code)
    scale = TernGrad().scale_of(vector.astype(np.float32))
    assert set(np.unique(back)) == {-np.float32(scale), 0, np.float32(scale)}


def test_with_a_shared_scale_the_sum_is_a_small_whole_number():
    rng = np.random.default_rng(1)
    vectors = [rng.standard_normal(500).astype(np.float32) * k for k in (1, 2, 5)]
    shared = max(TernGrad().scale_of(v) for v in vectors)
    coder = TernGrad(scale=shared)
    total = sum(coder.decode(coder.encode(v, k)) for k, v in enumerate(vectors))
    whole = total / np.float32(shared)
    np.testing.assert_array_equal(whole, np.rint(whole))
    assert np.abs(whole).max() <= 3


def test_values_beyond_the_scale_are_clipped_to_it():
    vector = np.array([5, -7, 0.5, 1e30, -0.0], np.float32)
    coder = TernGrad(scale=0.5)
    back = coder.decode(coder.encode(vector))
    np.testing.assert_array_equal(back, [0.5, -0.5, 0.5, 0.5, 0])


def test_an_infinity_is_never_clipped_away():
    for coder in (TernGrad(), TernGrad(clip=None), TernGrad(scale=0.5)):
        back = coder.decode(coder.propagating().encode([1, np.inf, -np.inf, np.nan, 2]))
        assert np.isfinite(back).tolist() == [True, False, False, False, True]


def test_whether_it_is_biased():
    assert TernGrad().biased
    assert TernGrad(clip=None, scale=2).biased
    assert not TernGrad(clip=None).biased
    assert TernGrad(scale=1).omega(100) == math.inf


def test_equal_values_are_not_clipped_to_nothing():
    for value, size in ((0.3, 1000), (2.0, 1), (-1e-30, 7)):
        vector = np.full(size, value, np.float32)
        np.testing.assert_array_equal(TernGrad().decode(TernGrad().encode(vector)), vector)
    assert TernGrad().decode(TernGrad().encode([])).shape == (0,)


@pytest.mark.parametrize("wrong", [{"clip": 0}, {"clip": -1}, {"clip": math.nan}])
def test_bad_clip(wrong):
    with pytest.raises(ValueError, match="clip must be positive"):
        TernGrad(**wrong)


@pytest.mark.parametrize("scale", [0, -1, math.inf, math.nan, 1e39])
def test_bad_scale(scale):
    with pytest.raises(ValueError, match="scale must be a positive float32"):
        TernGrad(scale=scale)


@pytest.mark.parametrize(
    ("zeros", "kept"), [(0.0, 0.98), (0.9, 0.38), (0.99, 0.055), (0.999, 0.006)]
)
def test_zeros_do_not_make_clipping_remove_the_gradient(zeros, kept):
    """The published rule counts zeros, and then keeps this part of the squared norm."""
    rng = np.random.default_rng(3)
    v = rng.standard_normal(200_000).astype(np.float32)
    v[rng.random(v.size) < zeros] = 0
    for coder, expected in ((TernGrad(), kept), (TernGrad(count_zeros=False), 0.98)):
        scale = coder.scale_of(v)
        energy = float(np.sum(np.square(np.clip(v, -scale, scale), dtype=np.float64)))
        share = energy / float(np.sum(np.square(v, dtype=np.float64)))
        assert share == pytest.approx(expected, rel=0.12)
