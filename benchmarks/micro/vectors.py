"""Inputs: positive integers at random indices, so that no sum is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcml import Stream
from sparcml.bench.vectors import positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 1 << 24  # "16 M" of the paper
FEW = 4 / 512  # the density at which it varies the ranks
SETS, RUNS = 5, 10  # fresh data, and how often each is summed


def vector(size: int, density: float, rank: int, data: int) -> Stream:
    """Return the vector of a rank in one data set; dense at density 1."""
    rng = np.random.default_rng([data, rank])
    stored = max(1, round(size * density))
    values = rng.integers(1, 9, stored, np.int8).astype(np.float32)
    if stored == size:
        return Stream.from_dense(values)
    return Stream(size, positions(rng, size, stored), values)


def total(vectors: list[Stream]) -> NDArray[np.float32]:
    """Return their sum by NumPy, which is exact."""
    found = np.zeros(vectors[0].size, np.float32)
    for x in vectors:
        found[slice(None) if x.is_dense else x.indices] += x.values
    return found
