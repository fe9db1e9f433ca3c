"""The largest coefficients of the cosine transform of each tile of a matrix.

The orthonormal DCT-II of n values is their product with the matrix C,

    C_ji = sqrt(2 / n) cos(pi (2 i + 1) j / 2n), and C_0i = 1 / sqrt(n)

C is orthogonal, so its transpose is the inverse and lengths are kept.

Reference: Peng et al.: DeMo: Decoupled Momentum Optimization, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..validation import check_integer
from .topk import TopK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..stream import Stream
    from ..stream.arrays import Values

    Shape = tuple[int, ...]


@dataclass(frozen=True)
class DCTTopK:
    """Select the k largest coefficients of each tile.

    Matrices are cut into tiles of side x side values, and vectors into runs of side values. Arrays
    of more dimensions are matrices of shape[0] rows. What is missing in the last tiles is zero;
    sides below `side` have one tile.

    Args:
        k: Coefficients per tile.
        side: Side of a tile.
    """

    k: int = 32
    side: int = 64

    def __post_init__(self) -> None:
        check_integer(self, "k", minimum=1)
        check_integer(self, "side", minimum=1)

    def transform(self, values: Values, shape: Shape) -> Values:
        """Return the coefficients of all tiles, one after the other."""
        rows, columns = _matrix(shape)
        a, b = self._tile(shape)
        padded = np.zeros((-(-rows // a) * a, -(-columns // b) * b), values.dtype)
        padded[:rows, :columns] = values.reshape(rows, columns)
        tiles = padded.reshape(padded.shape[0] // a, a, -1, b).transpose(0, 2, 1, 3)
        left, right = dct_matrix(a, values.dtype.str), dct_matrix(b, values.dtype.str)
        coefficients: Values = (left @ tiles @ right.T).reshape(-1)
        return coefficients

    def inverse(self, coefficients: Values, shape: Shape) -> Values:
        """Return the flat values of coefficients."""
        rows, columns = _matrix(shape)
        a, b = self._tile(shape)
        left = dct_matrix(a, coefficients.dtype.str)
        right = dct_matrix(b, coefficients.dtype.str)
        grid = coefficients.reshape(-(-rows // a), -(-columns // b), a, b)
        tiles = (left.T @ grid @ right).transpose(0, 2, 1, 3)
        padded = tiles.reshape(grid.shape[0] * a, grid.shape[1] * b)
        values: Values = np.ascontiguousarray(padded[:rows, :columns]).reshape(-1)
        return values

    def select(self, coefficients: Values, shape: Shape) -> Stream:
        """Return the k largest coefficients of each tile."""
        size = math.prod(self._tile(shape))
        return TopK(k=min(self.k, size), bucket=size).select(coefficients)

    def _tile(self, shape: Shape) -> tuple[int, int]:
        rows, columns = _matrix(shape)
        return min(self.side, rows), min(self.side, columns)


@lru_cache(maxsize=64)
def dct_matrix(n: int, dtype: str) -> NDArray[np.floating]:
    """Return the orthonormal DCT-II of n values as a matrix."""
    j, i = np.indices((n, n))
    matrix = np.sqrt(2 / n) * np.cos(np.pi * (2 * i + 1) * j / (2 * n))
    matrix[0] = 1 / np.sqrt(n)
    converted: NDArray[np.floating] = matrix.astype(dtype)
    return converted


def _matrix(shape: Shape) -> tuple[int, int]:
    """Return rows and columns; a vector is one row."""
    size = math.prod(shape)
    if len(shape) < 2 or not size:
        return 1, max(1, size)
    return shape[0], size // shape[0]
