"""RandomK's moments at 5 sigma, and that only the seed decides."""

import numpy as np
import pytest

import sparcml

from .vectors import gradient, norm2

SIZE, TRIALS = 200, 4000


def draws(sparsifier, v):
    return np.stack([sparsifier.select(v, seed).to_dense() for seed in range(TRIALS)])


def within(samples, mean, sigmas=5):
    """Whether the mean of samples is the expected one, to 5 standard errors."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return bool((np.abs(samples.mean(axis=0) - mean) <= sigmas * error + 1e-12).all())


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 20, 150])
def test_scaled_is_unbiased_with_its_variance(k):
    v = gradient(1, SIZE, np.float64)
    sparsifier = sparcml.RandomK(k=k)
    sent = draws(sparsifier, v)
    assert within(sent, v)
    squares = np.square(sent).sum(axis=1)
    assert within(squares, SIZE / k * norm2(v))
    assert sparsifier.omega(SIZE) == pytest.approx(SIZE / k - 1)
    errors = np.square(sent - v).sum(axis=1)
    assert within(errors, sparsifier.omega(SIZE) * norm2(v))


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 20, 150])
def test_unscaled_leaves_its_share(k):
    v = gradient(2, SIZE, np.float64)
    sent = draws(sparcml.RandomK(k=k, scaled=False), v)
    assert within(np.square(v - sent).sum(axis=1), (1 - k / SIZE) * norm2(v))


def test_every_place_is_as_likely_and_so_is_every_pair():
    size, k = 12, 5
    chosen = np.zeros((TRIALS, size))
    for seed in range(TRIALS):
        chosen[seed, sparcml.RandomK(k=k).indices(size, seed)] = 1
    assert within(chosen, k / size)
    pairs = np.einsum("ti,tj->tij", chosen, chosen)[:, *np.triu_indices(size, 1)]
    assert within(pairs, k * (k - 1) / (size * (size - 1)))


@pytest.mark.parametrize("k", [1, 3, 500, 501, 999, 1000])
def test_places_ascend_and_depend_on_the_seed_alone(k):
    sparsifier = sparcml.RandomK(k=k, shared=True)
    places = sparsifier.indices(1000, 7)
    assert places.dtype == np.uint32
    assert places.size == k
    assert (np.diff(places.astype(np.int64)) > 0).all()
    for v in (gradient(1, 1000), gradient(2, 1000, np.float64)):
        np.testing.assert_array_equal(sparsifier.select(v, 7).indices, places)
    if k < 900:
        assert sparsifier.indices(1000, 8).tolist() != places.tolist()


def test_seeds_of_any_size():
    r = sparcml.RandomK(k=3)
    assert r.indices(100, -1).tolist() == r.indices(100, 2**64 - 1).tolist()
    assert r.indices(2**32 - 1, 1).size == 3
    assert r.indices(0, 1).size == 0


def test_places_never_change():
    """Ranks with other versions of NumPy must find the same ones."""
    places = [251, 282, 412, 414, 847, 889]
    assert sparcml.RandomK(k=6).indices(1000, 1).tolist() == places


def test_with_one_seed_values_add_up_without_indices():
    ranks = [gradient(r, 500) for r in range(4)]
    sparsifier = sparcml.RandomK(0.1, scaled=False, shared=True)
    streams = [sparsifier.select(v, 11) for v in ranks]
    total = np.zeros(500, np.float32)
    total[sparsifier.indices(500, 11)] = sum(s.values for s in streams)
    np.testing.assert_array_equal(
        total, ((streams[0] + streams[1]) + streams[2] + streams[3]).to_dense()
    )
