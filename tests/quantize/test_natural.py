"""Natural compression: what the paper says of it."""

import numpy as np
import pytest

from sparcml import Natural

from .vectors import VECTORS, draws

TRIALS = 2000


@pytest.mark.parametrize("name", VECTORS)
def test_either_power_with_the_right_chance(name):
    v = VECTORS[name].astype(np.float64)
    rows = draws(Natural(), VECTORS[name], TRIALS)
    fraction, exponent = np.frexp(np.abs(v))
    low = np.where(v == 0, 0, 2.0 ** (exponent - 1))
    assert ((np.abs(rows) == low) | (np.abs(rows) == 2 * low)).all()
    assert (rows * np.sign(v) >= 0).all()
    p = np.where(v == 0, 0, 2 * fraction - 1)
    off = np.abs(rows.mean(0) - v) / np.where(v == 0, 1, low)
    assert (off <= 5 * np.sqrt(p * (1 - p) / TRIALS) + 25 / TRIALS * (p < 0.02)).all()
    lengths = (rows**2).mean(0)
    slack = 5 * (rows**2).std(0) / np.sqrt(TRIALS)
    assert (lengths - slack <= 9 / 8 * v**2 + 25 / TRIALS * (p < 0.02) * v**2).all()


def test_powers_of_two_stay_where_they_are():
    powers = 2.0 ** np.arange(-126, 128)
    vector = np.concatenate((powers, -powers, [0.0, -0.0])).astype(np.float32)
    for seed in range(20):
        back = Natural().decode(Natural().encode(vector, seed))
        np.testing.assert_array_equal(back, vector)


def test_every_power_next_to_any_float():
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, np.uint32)
    vector = bits.view(np.float32)
    back = Natural().decode(Natural(nonfinite="propagate").encode(vector, 1))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(vector))
    good = np.isfinite(vector) & (np.abs(vector) < 2.0**127)
    wide = vector[good].astype(np.float64)
    error = np.abs(back[good].astype(np.float64) - wide)
    assert (error <= np.maximum(np.abs(wide), 2.0**-126)).all()
    assert (back[np.isinf(vector)] == vector[np.isinf(vector)]).all()


def test_denormals_are_kept_on_average():
    vector = np.full(100_000, 2.0**-127, np.float32)
    back = Natural().decode(Natural().encode(vector, 1)) * 2.0**126
    assert set(np.unique(back)) == {0, 1}
    assert abs(back.mean() - 0.5) < 5 * 0.5 / np.sqrt(back.size)


def test_what_is_too_large_is_infinite_not_wrong():
    back = Natural().decode(Natural().encode(np.full(1000, 3.4e38), 1))
    assert np.isin(back, [2.0**127, np.inf]).all()
    assert np.isinf(back).any()


def test_nine_bits():
    assert [Natural().nbytes(n) for n in (0, 1, 8, 9, 1000)] == [0, 2, 9, 11, 1125]
