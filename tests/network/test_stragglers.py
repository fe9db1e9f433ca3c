"""K ranks with independent delays: all wait for the largest of them.

The lecture's riddle: of Gaussian delays it grows like sqrt(2 ln K), of exponential ones
like ln K.
"""

from math import log, pi, sqrt

import numpy as np
import pytest

import sparcml
from sparcml.network import ExponentialDelay, Gaussian, Network

AT_ONCE = Network(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
STEPS = 30


def by_barrier(comm):
    comm.barrier()


def by_sum(comm):
    comm.allreduce(np.ones(1, np.float32), algorithm="recursive_double")


def waits(ranks, stragglers, meet=by_barrier, steps=STEPS):
    """How long each of several steps takes beyond what is computed in it."""

    def work(comm):
        taken = []
        for _ in range(steps):
            start = comm.now()
            comm.advance(100.0)
            meet(comm)
            taken.append(comm.now() - start - 100.0)
        return taken

    sim = sparcml.simulate(
        work, ranks, AT_ONCE, stragglers=stragglers, timeout=1e6, trace=0
    )
    np.testing.assert_allclose(sim.results, [sim.results[0]] * ranks)
    return np.array(sim.results[0])


def close(got, mean, deviation):
    return abs(got.mean() - mean) < 5 * deviation / sqrt(len(got))


def largest_of_gaussians(K):
    """Mean and deviation of the largest of K, from its distribution."""
    from scipy.stats import norm

    x = np.linspace(-10, 12, 200_001)
    density = K * norm.pdf(x) * norm.cdf(x) ** (K - 1)
    mean = np.trapezoid(x * density, x)
    return mean, sqrt(np.trapezoid((x - mean) ** 2 * density, x))


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 4, 64])
def test_gaussian_delays_cost_the_largest_of_them(K):
    mean, deviation = largest_of_gaussians(K)
    assert close(waits(K, Gaussian(1.0)), mean, deviation)
    limit = sqrt(2 * log(K))  # which it approaches slowly, from below
    assert (2 / 3 if K > 4 else 0) * limit <= mean + 1e-9 <= limit + 2e-9


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 4, 64])
def test_exponential_delays_cost_a_harmonic_number(K):
    mean = sum(1 / i for i in range(1, K + 1))
    deviation = sqrt(sum(1 / i**2 for i in range(1, K + 1)))
    assert close(waits(K, ExponentialDelay(1.0)), mean, deviation)
    assert log(K) < mean <= log(K) + 1


@pytest.mark.slow
def test_a_sum_waits_like_a_barrier():
    """The same delays: who meets how makes no difference where messages are free."""
    first, second = (
        waits(24, ExponentialDelay(1.0), meet) for meet in (by_barrier, by_sum)
    )
    np.testing.assert_allclose(first, second, rtol=1e-9)


@pytest.mark.slow
def test_it_still_grows_at_hundreds_of_ranks():
    """ln K against sqrt(2 ln K): at 256 ranks more than twice as much."""
    K, steps = 256, 8
    mean, deviation = largest_of_gaussians(K)
    assert close(waits(K, Gaussian(1.0), steps=steps), mean, deviation)
    harmonic = sum(1 / i for i in range(1, K + 1))
    assert close(waits(K, ExponentialDelay(1.0), steps=steps), harmonic, pi / sqrt(6))
    assert harmonic > 2 * mean
