"""Codebook: two centroids per bucket, and its published error on the largest entries."""

import numpy as np
import pytest

from sparcml import Sign, TopK
from sparcml.quantize import Codebook
from sparcml.quantize.codebook import two_centroids


def energy(error, values):
    return float(np.vdot(error, error) / np.vdot(values, values))


def test_the_largest_entries_of_normal_values_lose_less_than_half_a_percent():
    x = np.random.default_rng(0).standard_normal(2**20).astype(np.float32)
    values = TopK(k=64, bucket=4096).select(x).values
    codebook, sign = Codebook(), Sign(bucket=1024)
    own = energy(codebook.decode(codebook.encode(values)) - values, values)
    assert own == pytest.approx(0.0043, abs=0.0002)
    assert energy(sign.decode(sign.encode(values)) - values, values) == pytest.approx(
        0.0123, abs=0.0005
    )


def test_two_magnitudes_are_exact():
    values = np.array([3, -7, 3, 3, 7, -3, 7, 7, -7], np.float32)
    codebook = Codebook(bucket=4)
    np.testing.assert_array_equal(codebook.decode(codebook.encode(values)), values)


def test_centroids_are_the_means_of_their_values():
    magnitudes = np.random.default_rng(1).exponential(size=1000).astype(np.float32)
    centroids, high = two_centroids(magnitudes, 300)
    for i, start in enumerate(range(0, 1000, 300)):
        part, is_high = magnitudes[start : start + 300], high[start : start + 300]
        means = [
            part[~is_high].mean(dtype=np.float64),
            part[is_high].mean(dtype=np.float64),
        ]
        np.testing.assert_allclose(centroids[i], means, rtol=1e-6)
        assert part[is_high].min() > part[~is_high].max()


def test_constant_empty_and_undefined_buckets():
    codebook = Codebook(bucket=2)
    assert codebook.encode(np.empty(0, np.float32)).nbytes == 0
    values = np.array([5, 5, 0, 0, np.nan, 1], np.float32)
    decoded = codebook.decode(codebook.propagating().encode(values))
    np.testing.assert_array_equal(decoded[:4], values[:4])
    assert np.isnan(decoded[4:]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [((0, 0x80), "must not be negative"), ((-1, 0xF0), "bits beyond the last of 3 values")],
)
def test_malformed_codes(change, message):
    codebook = Codebook(bucket=4)
    code = codebook.encode(np.array([1, -2, 3], np.float32))
    at, value = change
    code.data[3 if at == 0 else at] |= value
    with pytest.raises(ValueError, match=message):
        codebook.decode(code)
