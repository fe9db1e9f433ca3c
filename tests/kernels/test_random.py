"""Random numbers by position: even, and independent of neighbours, seeds and places."""

import itertools

import numpy as np
import pytest

from tests.kernels.reference.random import FRACTION, fractions, words

COUNT = 1 << 16
SEEDS = (0, 1, 2, 3, 1 << 32, 1 << 63, 12345678901234567890)
LAGS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 1024)


def uniform(seed, first=0, count=COUNT):
    """Of mean 0 and variance 1."""
    drawn = (fractions(seed, first, count) + 0.5) / 2**FRACTION
    return (drawn - 0.5) * np.sqrt(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_numbers_are_as_likely(seed):
    for bits in (16, 8, 4):
        drawn = fractions(seed, 0, 1 << 20) >> (FRACTION - bits)
        cells, due = np.bincount(drawn, minlength=1 << bits), (1 << 20) / (1 << bits)
        chi = ((cells - due) ** 2 / due).sum()
        freedom = (1 << bits) - 1
        assert abs(chi - freedom) < 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_bit_is_as_often_one_as_zero(seed):
    drawn = words(seed, 0, COUNT)
    for bit in range(32):
        assert abs((drawn >> bit & 1).mean() - 0.5) < 5 * 0.5 / np.sqrt(COUNT)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("first", [0, 8, 1 << 20, (1 << 32) - 4096, 1 << 40])
def test_neighbours_have_nothing_in_common(seed, first):
    x = uniform(seed, first)
    assert abs(x.mean()) < 5 / np.sqrt(COUNT)
    assert abs((x * x).mean() - 1) < 5 * np.sqrt(0.8 / COUNT)
    for lag in LAGS:
        assert abs((x[lag:] * x[:-lag]).mean()) < 5 / np.sqrt(COUNT - lag)


def test_seeds_have_nothing_in_common():
    ranks = [(7 << 32) + (rank << 8) + turn for rank in range(4) for turn in range(4)]
    streams = [uniform(seed) for seed in (*SEEDS, *ranks)]
    for a, b in itertools.combinations(streams, 2):
        for shift in (0, 1, 8, 16):
            assert abs((a[shift:] * b[: COUNT - shift]).mean()) < 5 / np.sqrt(COUNT - shift)


def test_one_place_under_many_seeds():
    for place in (0, 8, 1000):
        x = np.concatenate([uniform(seed, place, 16) for seed in range(4096)])
        assert abs(x.mean()) < 5 / np.sqrt(x.size)
        rows = x.reshape(-1, 16)
        assert np.abs(np.corrcoef(rows.T) - np.eye(16)).max() < 5 / np.sqrt(4096)
        assert np.abs((rows[1:] * rows[:-1]).mean(0)).max() < 5 / np.sqrt(4095)


def test_pairs_fill_the_square():
    x = fractions(3, 0, 1 << 20) >> FRACTION - 5
    for lag in (1, 8, 16):
        cells = np.bincount(x[lag:] * 32 + x[:-lag], minlength=1024)
        due = (x.size - lag) / 1024
        chi = ((cells - due) ** 2 / due).sum()
        assert abs(chi - 1023) < 5 * np.sqrt(2 * 1023)


def test_what_neighbours_decide_has_nothing_in_common():
    """Many draws, and a generator's small faults: one multiplication fewer fails here."""
    count, piece = 1 << 25, 1 << 20
    portions, lags = (0.05, 0.1, 0.3, 0.5), (1, 2, 3, 4, 8, 16)
    found = dict.fromkeys(itertools.product(portions, lags), 0.0)
    for at in range(0, count, piece):
        drawn = words(1, at, piece)
        for share in portions:
            x = (drawn < share * 2**32) - share
            for lag in lags:
                found[share, lag] += float(x[lag:] @ x[:-lag])
    for (share, lag), total in found.items():
        assert abs(total) < 5 * share * (1 - share) * np.sqrt(count), (share, lag)


def test_any_stretch_can_be_drawn_alone():
    whole = words(5, (1 << 32) - 20, 64)
    for first in (0, 8, 19, 20, 21, 40):
        np.testing.assert_array_equal(
            words(5, (1 << 32) - 20 + first, 10), whole[first:][:10]
        )
