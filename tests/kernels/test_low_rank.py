"""Products with narrow factors: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels import _core, low_rank
from tests.kernels.reference import low_rank as reference

from .data import same

pytestmark = pytest.mark.usefixtures("isa")
# Rows, columns and rank: around the lanes, the blocks, and the groups of four columns.
SHAPES = [(1, 1, 1), (7, 9, 2), (300, 17, 3), (5, 2051, 4), (513, 1025, 5), (40, 64, 9)]


def matrices(n, m, r, dtype):
    rng = np.random.default_rng([n, m, r])
    shapes = ((n, m), (r, n), (r, m))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "r"), SHAPES)
def test_the_definition(n, m, r, dtype):
    M, P, Q = matrices(n, m, r, dtype)
    same(low_rank.project_rows(M, Q), reference.project_rows(M, Q))
    same(low_rank.project_columns(M, P), reference.project_columns(M, P))
    same(low_rank.expand_factors(P, Q), reference.expand_factors(P, Q))
    expected = reference.orthonormalize(P)
    low_rank.orthonormalize(P)
    same(P, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "r"), SHAPES)
def test_passes_with_a_residual_change_no_bit(n, m, r, dtype):
    gradient, P, Q = matrices(n, m, r, dtype)
    residual = matrices(n + 1, m, r, dtype)[0][1:]
    expected = np.empty_like(gradient)
    old, new, flat = (a.reshape(-1) for a in (residual, gradient, expected))
    kernels.add_residual(old, new, flat, 0.7)
    M = residual.copy()  # the sum may replace the residual
    found, finite = low_rank.project_corrected_rows(M, gradient, Q, M, 0.7)
    assert finite
    same(M, expected)
    same(found, low_rank.project_rows(expected, Q))
    product, left = low_rank.expand_factors(P, Q), expected.copy()
    out = np.empty_like(product)
    assert low_rank.expand_factors(P, Q, out, left) is out
    same(out, product)
    same(left, expected - product)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_found(value):
    for at in (0, 8, 1024, 9 * 1030 - 1):
        gradient, _, Q = matrices(9, 1030, 2, np.float32)
        residual = np.zeros_like(gradient)
        gradient.reshape(-1)[at] = value
        with np.errstate(all="ignore"):
            _, finite = low_rank.project_corrected_rows(
                residual, gradient, Q, np.empty_like(gradient)
            )
        assert not finite


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_numpy(dtype):
    M, P, Q = matrices(300, 1500, 6, dtype)
    rtol, atol = (1e-4, 1e-3) if dtype == np.float32 else (1e-12, 1e-11)
    wide = [a.astype(np.float64) for a in (M, P, Q)]
    for ours, theirs in (
        (low_rank.project_rows(M, Q).T, wide[0] @ wide[2].T),
        (low_rank.project_columns(M, P).T, wide[0].T @ wide[1].T),
        (low_rank.expand_factors(P, Q), wide[1].T @ wide[2]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol, atol)


@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e38])
def test_rows_become_orthonormal(scale):
    _, P, _ = matrices(100, 1, 4, np.float32)
    P[:] = np.clip(P, -3, 3) * np.float32(scale)
    span = P / np.abs(P).max()
    low_rank.orthonormalize(P)
    np.testing.assert_allclose(P @ P.T, np.eye(4), atol=1e-6)
    np.testing.assert_allclose((span @ P.T) @ P, span, atol=1e-5)


def test_rows_that_depend_on_others_become_zero():
    _, P, _ = matrices(50, 1, 5, np.float32)
    P[1], P[3], P[4] = 0, 2 * P[0], P[0] - 3 * P[2]
    low_rank.orthonormalize(P)
    assert np.abs(P).max(axis=1).astype(bool).tolist() == [True, False, True, False, False]


def test_more_rows_than_values():
    P = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    low_rank.orthonormalize(P)
    assert not P[3:].any()
    np.testing.assert_allclose(P[:3] @ P[:3].T, np.eye(3), atol=1e-6)


def test_nan_and_infinity_propagate():
    for bad in (np.nan, np.inf):
        _, P, _ = matrices(20, 1, 2, np.float32)
        P[0, 3] = bad
        low_rank.orthonormalize(P)
        assert np.isnan(P).any(axis=1).all()


def test_shapes_that_do_not_fit():
    M, P, Q = matrices(4, 5, 2, np.float32)
    with pytest.raises(ValueError, match="M must be n x m"):
        _core.project_rows(M, P, P)
    with pytest.raises(ValueError, match="M must be n x m"):
        _core.project_columns(M, Q, Q)
    with pytest.raises(ValueError, match="r > 0"):
        _core.expand_factors(P[:0], Q[:0], M)
