"""Products with narrow factors, defined in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]

LANES, ROWS, COLUMNS = 8, 256, 1024


def project_rows(M: Matrix, Q: Matrix) -> Matrix:
    """Return M Q: sums in 8 lanes per block of 1024 columns, then over the blocks."""
    P = np.zeros((len(Q), len(M)), M.dtype)
    for start in range(0, M.shape[1], COLUMNS):
        block = slice(start, start + COLUMNS)
        for k, q in enumerate(Q):
            P[k] += _lane_sums(M[:, block] * q[block])
    return P


def project_columns(M: Matrix, P: Matrix) -> Matrix:
    """Return M^T P: rows in their order per block of 256 rows, then the blocks."""
    Q = np.zeros((len(P), M.shape[1]), M.dtype)
    for top in range(0, len(M), ROWS):
        block = slice(top, top + ROWS)
        for k, p in enumerate(P):
            part = np.zeros_like(Q[k])
            for product in p[block, None] * M[block]:
                part += product
            Q[k] += part
    return Q


def expand_factors(P: Matrix, Q: Matrix) -> Matrix:
    """Return P Q^T, from the first column of the factors to the last."""
    M = np.outer(P[0], Q[0])
    for p, q in zip(P[1:], Q[1:], strict=True):
        M += np.outer(p, q)
    return M


def orthonormalize(P: Matrix) -> Matrix:
    """Return orthonormal rows with the same span; dependent ones become zero."""
    wide = P.astype(np.float64)
    for k in range(len(wide)):
        row = wide[k]
        largest = np.fmax.reduce(np.abs(row), initial=0.0)
        if largest > 0:
            row /= largest
        before = np.sqrt(_lane_sums(row[None] * row)[0])
        for _ in range(2):
            for other in wide[:k]:
                row -= _lane_sums(other[None] * row)[0] * other
        after = np.sqrt(_lane_sums(row[None] * row)[0])
        if after <= 4 * float(np.finfo(P.dtype).eps) * before:
            row[:] = 0
        else:
            row /= after
    return wide.astype(P.dtype)


def _lane_sums(products: Matrix) -> Matrix:
    """Return the sum of each row: column j is added to lane j mod 8, then a tree."""
    rows, columns = products.shape
    padded = np.zeros((rows, -(-columns // LANES) * LANES), products.dtype)
    padded[:, :columns] = products
    lanes = padded.reshape(rows, -1, LANES)
    a = np.add.accumulate(np.concatenate((np.zeros_like(lanes[:, :1]), lanes), 1), 1)[:, -1]
    total = ((a[:, 0] + a[:, 4]) + (a[:, 2] + a[:, 6])) + (
        (a[:, 1] + a[:, 5]) + (a[:, 3] + a[:, 7])
    )
    return np.asarray(total)
