"""Late ranks, small: what a step waits for is the largest delay."""

from math import pi, sqrt

import pytest
from claims import stragglers


@pytest.mark.parametrize(
    ("ranks", "mean"), [(1, 0.0), (2, 1 / sqrt(pi)), (3, 3 / (2 * sqrt(pi)))]
)
def test_the_largest_gaussian_has_its_known_mean(ranks, mean):
    assert stragglers.largest("Gaussian", ranks)[0] == pytest.approx(mean, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", stragglers.KINDS)
def test_waiting_is_the_largest_delay(kind):
    (row,) = stragglers.measure(kind, 16, steps=80)
    assert abs(row["wait"] - row["exact"]) < stragglers.SIGMAS * row["sigma"]
    alone = stragglers.largest(kind, 1)[0]
    assert row["wait"] - alone > stragglers.SIGMAS * row["sigma"]
