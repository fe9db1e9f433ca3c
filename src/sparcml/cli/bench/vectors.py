"""Random vectors whose sums are exact: small whole numbers at random places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def positions(rng: np.random.Generator, blocks: int, nnz: int) -> NDArray[np.uint32]:
    """Ascending indices: a uniformly random subset of that many."""
    if 2 * nnz > blocks:  # few are left out: draw those
        kept = np.ones(blocks, np.bool_)
        kept[positions(rng, blocks, blocks - nnz)] = False
        return np.flatnonzero(kept).astype(np.uint32)
    drawn = np.empty(0, np.uint32)
    while drawn.size < nnz:
        more = rng.integers(0, blocks, nnz - drawn.size, np.uint32)
        drawn = np.sort(np.concatenate([drawn, more]))
        drawn = drawn[np.append(True, drawn[1:] != drawn[:-1])]
    return drawn


def whole_numbers(
    rng: np.random.Generator, size: int, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """From -8 to 8 without 0: no order of adding them rounds."""
    numbers = rng.integers(1, 17, size, np.int8)
    numbers[numbers > 8] -= 17
    return numbers.astype(dtype)


def different(got: NDArray[Any], want: NDArray[Any], allowed: float = 0.0) -> int:
    """How many entries differ by more than that; a missing or surplus one counts too."""
    common = min(got.size, want.size)
    near = np.abs(got[:common] - want[:common]) <= allowed
    differing = common - np.count_nonzero(near)
    return int(differing) + max(got.size, want.size) - common


@dataclass(frozen=True)
class Problem:
    """Vectors to be summed: `nnz` blocks at random places, other ones on each rank."""

    size: int
    density: float
    dtype: str = "float32"
    block: int = 1
    seed: int = 1

    @property
    def nbytes(self) -> int:
        """Of the dense vector."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def nnz(self) -> int:
        """Blocks that each rank stores."""
        return max(1, round(self.size // self.block * self.density))

    def coding_error(self, ranks: int) -> float:
        """What `QSGD(8)` or `Half` may add to an entry of the sum: each rank's, the owner's.

        A step of 127 in the largest value, which is 8 on a rank and 8 P in the sum.
        """
        return (ranks * 8 + 8 * ranks + 8) / 127

    def vector(self, rank: int) -> Stream:
        """What this rank brings."""
        rng = np.random.default_rng([self.seed, rank])
        indices = positions(rng, self.size // self.block, self.nnz)
        values = whole_numbers(rng, self.nnz * self.block, self.dtype)
        if values.size == self.size:  # as one would hold it
            return Stream.from_dense(values)
        return Stream(self.size, indices, values, block=self.block)

    def total(self, ranks: int) -> NDArray[Any]:
        """The exact sum of all ranks' vectors, by NumPy alone."""
        total = np.zeros((self.size // self.block, self.block), self.dtype)
        for rank in range(ranks):
            x = self.vector(rank)
            rows = slice(None) if x.is_dense else x.indices
            total[rows] += x.values.reshape(-1, self.block)
        return total.reshape(-1)
