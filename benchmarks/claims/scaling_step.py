"""A training step on real and on simulated ranks: computing, then the mean gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import sparcml


class Step:
    """One rank's gradient, and the state of its aggregation method.

    Args:
        comm: Communicator.
        method: Aggregation method.
        size: Number of parameters; the largest values are at random indices.
    """

    def __init__(
        self, comm: sparcml.Communicator, method: sparcml.Method, size: int
    ) -> None:
        self._comm, self._method = comm, method
        random = np.random.default_rng(comm.rank)
        self._gradient = random.standard_normal(size, dtype=np.float32)
        self._state = method.init(size)

    def run(self, compute: Callable[[], None]) -> float:
        """Return the seconds of a step on this rank's clock, after a common start."""
        self._comm.barrier()
        start = self._comm.now()
        compute()
        _, self._state = self._method.aggregate(self._comm, self._gradient, self._state)
        return self._comm.now() - start
