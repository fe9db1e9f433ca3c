"""Random vectors with exact sums: small integers at random indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from sparcml.quantize import Quantizer

SEEDS = 4  # of the random quantizers, for a bound of their error


def positions(rng: np.random.Generator, blocks: int, nnz: int) -> NDArray[np.uint32]:
    """Draw `nnz` of `blocks` indices uniformly at random, in ascending order."""
    if 2 * nnz > blocks:  # drawing the complement is faster
        selected = np.ones(blocks, np.bool_)
        selected[positions(rng, blocks, blocks - nnz)] = False
        return np.flatnonzero(selected).astype(np.uint32)
    drawn = np.empty(0, np.uint32)
    while drawn.size < nnz:
        more = rng.integers(0, blocks, nnz - drawn.size, np.uint32)
        drawn = np.sort(np.concatenate([drawn, more]))
        drawn = drawn[np.append(True, drawn[1:] != drawn[:-1])]
    return drawn


def nonzero_integers(
    rng: np.random.Generator, size: int, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """Draw integers from -8 to 8 without 0, whose sums are exact in any order."""
    numbers = rng.integers(1, 17, size, np.int8)
    numbers[numbers > 8] -= 17
    return numbers.astype(dtype)


def different(result: NDArray[Any], expected: NDArray[Any], tolerance: float = 0.0) -> int:
    """Count values that differ by more than `tolerance`, or are missing, or surplus."""
    common = min(result.size, expected.size)
    near = np.abs(result[:common] - expected[:common]) <= tolerance
    differing = common - np.count_nonzero(near)
    return int(differing) + max(result.size, expected.size) - common


@dataclass(frozen=True)
class BenchCase:
    """Vectors to reduce: `nnz` blocks at random indices, different ones on each rank."""

    size: int
    density: float
    dtype: str = "float32"
    block: int = 1
    seed: int = 1

    @property
    def nbytes(self) -> int:
        """Bytes of the dense vector."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def nnz(self) -> int:
        """Nonzero blocks per rank."""
        return max(1, round(self.size // self.block * self.density))

    def quantization_error(self, quantizer: Quantizer, ranks: int) -> float:
        """Return a bound of the error that a quantizer can add to a value of the sum.

        Each rank and the owner of the range encode the value once. The largest value is 8 on
        a rank and 8 P in the sum; errors are proportional to it.
        """
        values = np.linspace(-1, 1, 1 << 13, dtype=np.float32)
        codes = [quantizer.encode(values, seed) for seed in range(SEEDS)]
        errors = [np.abs(quantizer.decode(code) - values).max() for code in codes]
        return 1.1 * float(max(errors)) * (ranks * 8 + 8 * ranks + 8)

    def vector(self, rank: int) -> Stream:
        """Return the vector of a rank."""
        rng = np.random.default_rng([self.seed, rank])
        indices = positions(rng, self.size // self.block, self.nnz)
        values = nonzero_integers(rng, self.nnz * self.block, self.dtype)
        if values.size == self.size:  # users would pass it dense
            return Stream.from_dense(values)
        return Stream(self.size, indices, values, block=self.block)

    def total(self, ranks: int) -> NDArray[Any]:
        """Return the exact sum of all ranks' vectors, computed by NumPy alone."""
        total = np.zeros((self.size // self.block, self.block), self.dtype)
        for rank in range(ranks):
            x = self.vector(rank)
            rows = slice(None) if x.is_dense else x.indices
            total[rows] += x.values.reshape(-1, self.block)
        return total.reshape(-1)
