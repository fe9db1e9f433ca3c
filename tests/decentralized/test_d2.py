"""D2: no bias of different data, and the limit of the smallest eigenvalue."""

import warnings

import numpy as np
import pytest

from sparcml import decentralized as dec

from .training import EIGHT, mix_only, quadratic, random_models


def even_ring():
    with pytest.warns(UserWarning, match=r"ring\(8\) is -1/3.*use ring\(8\).lazy\(\)"):
        return dec.D2(dec.ring(8))


@pytest.mark.parametrize(("steps", "error"), [(51, 0.0172937), (101, 1.52784e-4)])
def test_errors_of_the_ring(steps, error):
    models = quadratic(even_ring(), steps)
    assert np.abs(models - 3.5).max() == pytest.approx(error, rel=1e-5)


def test_it_is_the_recursion_of_the_paper():
    W, lr = dec.ring(8).lazy().matrix(), 0.1
    old, x = np.zeros(8), np.zeros(8)
    old_g = x - EIGHT
    x = W @ (x - lr * old_g)
    for _ in range(29):
        g = x - EIGHT
        old, old_g, x = x, g, W @ (2 * x - old - lr * g + lr * old_g)
    models = quadratic(dec.D2(dec.ring(8).lazy()), 30)
    np.testing.assert_allclose(models, x, atol=1e-13)


@pytest.mark.parametrize("topology", [dec.ring(7), dec.complete(7), dec.torus(2, 4).lazy()])
def test_fixed_point_is_the_optimum(topology):
    targets = EIGHT[: topology.size]
    models = quadratic(dec.D2(topology), 70, targets=targets, start=targets.mean())
    np.testing.assert_allclose(models, targets.mean(), atol=1e-6)


def test_corrections_add_up_to_zero_and_become_the_gradients():
    models, states = mix_only(dec.D2(dec.ring(5)), random_models(5), 20)
    corrections = np.array([state["correction"] for state in states])
    np.testing.assert_allclose(corrections.sum(0), 0, atol=1e-13)
    np.testing.assert_allclose(models.mean(0), random_models(5).mean(0), atol=1e-13)


def test_below_the_limit_differences_grow():
    """Why D2 refuses a hypercube: the recursion without the check."""
    W = np.eye(8)
    W[np.arange(8)[:, None], np.arange(8)[:, None] ^ [1, 2, 4]] = 1
    W /= 4
    hypercube = dec.from_matrix(W)
    with pytest.raises(
        ValueError, match=r"D2: topology must have .* above -1/3, got -0.5 of"
    ):
        dec.D2(hypercube)
    x, y = np.zeros(8), np.zeros(8)
    sizes = []
    for _ in range(200):
        h = x - 0.1 * (x - EIGHT**2) + y
        x = W @ h
        y += x - h
        sizes.append(np.abs(x).max())
    assert sizes[-1] / sizes[-2] == pytest.approx(1.29696, abs=1e-5)
    models = quadratic(dec.D2(hypercube.lazy()), 80, start=3.5)
    np.testing.assert_allclose(models, 3.5, atol=1e-3)


def test_a_zero_start_at_minus_one_would_end_elsewhere():
    """The known error of other libraries: x_-1 = g_-1 = 0 with a start of 1."""
    W, x, old, old_g = dec.ring(8).lazy().matrix(), np.ones(8), np.zeros(8), np.zeros(8)
    for _ in range(400):
        g = x - EIGHT
        old, old_g, x = x, g, W @ (2 * x - old - 0.1 * g + 0.1 * old_g)
    np.testing.assert_allclose(x, 13.5, atol=1e-6)
    models = quadratic(dec.D2(dec.ring(8).lazy()), 120, start=1.0)
    np.testing.assert_allclose(models, 3.5, atol=1e-2)


def test_odd_rings_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dec.D2(dec.ring(7))
