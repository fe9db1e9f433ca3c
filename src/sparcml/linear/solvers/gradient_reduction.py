"""The ranks' gradients summed up: sparse, dense for comparison, or by a method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import kernels
from ...aggregate import Dense
from ...stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...aggregate import Method
    from ...aggregate import State as MethodState
    from ...communicator.communicator import Communicator

COMMUNICATION = ("sparse", "dense")


@dataclass
class Exchange:
    """How gradients travel, and what it took so far.

    Attributes:
        comm: The ranks.
        size: Of the gradients, at first with all columns.
        communication: "sparse", or "dense" for the engine's own sum of dense vectors.
        algorithm: Of sparse sums, as for `allreduce`.
        method: Instead, a method of `sparcml.aggregate`.
        seconds: Spent in sums.
        dense_bytes: What a rank would have sent with a ring's sum of dense vectors, of all
            columns.
    """

    comm: Communicator
    size: int
    communication: str = "sparse"
    algorithm: str = "auto"
    method: Method | None = None
    seconds: float = 0.0
    dense_bytes: float = 0.0
    _full: int = field(init=False)
    _buffer: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._full = self.size

    @property
    def alone(self) -> bool:
        """Whether there is nothing to exchange."""
        return self.comm.size == 1 and self.method is None

    def sum(self, gradient: Stream, state: MethodState) -> tuple[Stream, MethodState]:
        """The sum over all ranks, and the method's new state."""
        ranks, start = self.comm.size, self.comm.now()
        if self.method is not None:
            total, state = self._by_method(self.method, gradient, state)
        elif self.communication == "dense":
            dense = self._dense(gradient)
            total = Stream.unchecked(
                self.size, None, self.comm.allreduce(dense, algorithm="native")
            )
            dense[gradient.indices] = 0.0
        else:
            total = self.comm.allreduce(gradient, algorithm=self.algorithm)
        self.seconds += self.comm.now() - start
        self.dense_bytes += 2 * (ranks - 1) / ranks * self._full * gradient.dtype.itemsize
        return total, state

    def _by_method(
        self, method: Method, gradient: Stream, state: MethodState
    ) -> tuple[Stream, MethodState]:
        """Methods give means, and all but Dense select from dense gradients."""
        ranks = gradient.dtype.type(self.comm.size)
        if isinstance(method, Dense):
            mean, state = method.aggregate(self.comm, gradient, state)
            scaled = mean.raw_values * ranks
            return Stream.unchecked(self.size, mean.raw_indices, scaled), state
        dense = self._dense(gradient)
        mean, state = method.aggregate(self.comm, dense, state)
        dense[gradient.indices] = 0.0
        return Stream.unchecked(self.size, None, mean * ranks), state

    def _dense(self, gradient: Stream) -> NDArray[Any]:
        """The gradient in a buffer that is zero again when its indices are."""
        if self._buffer is None:
            self._buffer = np.zeros(self.size, gradient.dtype)
        kernels.scatter_assign(self._buffer, *gradient.pairs())
        return self._buffer
