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


def expand_factors(P: Matrix, Q: Matrix) -> Matrix:
    """Return P Q^T, of shape (n, m)."""
    M = np.empty((P.shape[1], Q.shape[1]), P.dtype)
    _core.expand_factors(P, Q, M)
    return M


def orthonormalize(P: Matrix) -> None:
    """Make the rows of P orthonormal, in place. A row that depends on others becomes zero."""
    _core.orthonormalize(P)
