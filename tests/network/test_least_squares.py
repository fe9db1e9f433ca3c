"""Least squares: known costs come back, and errors say how far to trust them."""

import numpy as np
import pytest

from sparcml.network.least_squares import least_squares

ALPHA, MESSAGE, BETA = 120e-6, 30e-6, 8.5e-9
COUNTS = [(1, m - 1, m * n) for m in (1, 2, 8) for n in (0, 1000, 1 << 20)]


def seconds(counts, *costs):
    return [sum(n * c for n, c in zip(row, costs, strict=True)) for row in counts]


def test_exact_times_give_the_costs_back():
    fit = least_squares(COUNTS, seconds(COUNTS, ALPHA, MESSAGE, BETA))
    assert fit.costs == pytest.approx((ALPHA, MESSAGE, BETA), rel=1e-9)
    assert fit.misfit < 1e-9
    assert all(
        error < 1e-9 * cost for error, cost in zip(fit.errors, fit.costs, strict=True)
    )


def test_errors_are_those_of_the_noise():
    rng = np.random.default_rng(0)
    counts = COUNTS * 50
    exact = np.array(seconds(counts, ALPHA, MESSAGE, BETA))
    noisy = exact * (1 + 0.05 * rng.standard_normal(len(exact)))
    fit = least_squares(counts, noisy.tolist())
    assert 0.04 < fit.misfit < 0.06
    true = (ALPHA, MESSAGE, BETA)
    for got, error, want in zip(fit.costs, fit.errors, true, strict=True):
        assert 0 < error < 0.05 * want
        assert abs(got - want) < 5 * error + 0.01 * want


def test_nothing_costs_less_than_nothing():
    counts = [(1, n) for n in (1, 10, 100)]
    fit = least_squares(counts, [1.0, 0.9, 0.8])
    assert fit.costs[1] == 0
    assert fit.errors[1] == 0
    assert 0.8 < fit.costs[0] < 1
    assert fit.misfit > 0.05


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_are_none(bad):
    with pytest.raises(ValueError, match="finite and > 0"):
        least_squares([(1, 0), (1, 1)], [1.0, bad])
