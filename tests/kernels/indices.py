"""What the tests of index codes share."""

import numpy as np
from hypothesis import HealthCheck, settings
from numpy.typing import ArrayLike, NDArray

LIMIT = 2**32 - 1

# The instruction set is a fixture; that it holds for all examples is what we want.
quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def u32(values: ArrayLike) -> NDArray[np.uint32]:
    return np.array(values, np.uint32)


def random_indices(n: int, density: float, seed: int = 0) -> NDArray[np.uint32]:
    return u32(np.cumsum(np.random.default_rng(seed).geometric(density, n)) - 1)


def blocks_of(indices: NDArray[np.uint32]) -> int:
    return int(indices[-1]) + 1 if indices.size else 0
