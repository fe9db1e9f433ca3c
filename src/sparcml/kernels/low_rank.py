"""Products with narrow factors, with the same bits on every processor (unlike a BLAS).

A factor with r columns is an array of shape (r, n): one row per column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core

Matrix = NDArray[Any]  # float32 or float64


def project_rows(M: Matrix, Q: Matrix) -> Matrix:
    """Return M Q for a factor Q of shape (r, m), as a factor of shape (r, n)."""
    P = np.empty((Q.shape[0], M.shape[0]), M.dtype)
    _core.project_rows(M, Q, P)
    return P


def project_columns(M: Matrix, P: Matrix) -> Matrix:
    """Return M^T P for a factor P of shape (r, n), as a factor of shape (r, m)."""
    Q = np.empty((P.shape[0], M.shape[1]), M.dtype)
    _core.project_columns(M, P, Q)
    return Q


def project_corrected_rows(
    residual: Matrix, gradient: Matrix, Q: Matrix, out: Matrix, scale: float = 1.0
) -> tuple[Matrix, bool]:
    """Write M = scale * residual + gradient to `out`, as `add_residual` does.

    Returns:
        `project_rows(M, Q)`, and whether all of M is finite.
    """
    P = np.empty((Q.shape[0], out.shape[0]), out.dtype)
    finite = _core.project_corrected_rows(residual, gradient, scale, out, Q, P)
    return P, finite


def expand_factors(
    P: Matrix, Q: Matrix, out: Matrix | None = None, residual: Matrix | None = None
) -> Matrix:
    """Return P Q^T, of shape (n, m), and subtract it from a residual, if that is given."""
    M = np.empty((P.shape[1], Q.shape[1]), P.dtype) if out is None else out
    _core.expand_factors(P, Q, M, residual)
    return M


def orthonormalize(P: Matrix) -> None:
    """Make the rows of P orthonormal, in place. A row that depends on others becomes zero."""
    _core.orthonormalize(P)
