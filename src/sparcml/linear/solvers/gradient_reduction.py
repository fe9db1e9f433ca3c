"""Sums of the ranks' gradients: sparse, dense for comparison, or by an aggregation method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import kernels
from ...costs import ring_nbytes
from ...stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...aggregate import Method
    from ...aggregate import State as MethodState
    from ...communicator.communicator import Communicator

COMMUNICATION = ("sparse", "dense")


@dataclass
class GradientReduction:
    """The allreduce of gradients, with its costs so far.

    Attributes:
        comm: The ranks.
        size: Size of the gradients; it shrinks when columns are compressed.
        communication: "sparse", or "dense" for the engine's own allreduce.
        algorithm: Algorithm of the sparse allreduce.
        method: An aggregation method, used instead.
        seconds: Seconds in communication.
        dense_bytes: Bytes that a rank would have sent in a dense ring over all columns.
    """

    comm: Communicator
    size: int
    communication: str = "sparse"
    algorithm: str = "auto"
    method: Method | None = None
    seconds: float = 0.0
    dense_bytes: float = 0.0
    _full_size: int = field(init=False)
    _buffer: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._full_size = self.size

    @property
    def is_local(self) -> bool:
        """Whether there is nothing to communicate or compress."""
        return self.comm.size == 1 and self.method is None

    def sum(
        self, gradient: Stream, state: MethodState, steps: int = 1
    ) -> tuple[Stream, MethodState]:
        """Return the sum over all ranks and the method's new state. Collective.

        Args:
            gradient: Gradient, or change of the weights.
            state: State of the method.
            steps: Steps whose dense rings it stands for.
        """
        ranks, start = self.comm.size, self.comm.now()
        if self.method is not None:
            result, state = self._by_method(self.method, gradient, state)
        elif self.communication == "dense":
            dense = self._to_dense(gradient)
            result = Stream.unchecked(
                self.size, None, self.comm.allreduce(dense, algorithm="native")
            )
            dense[gradient.indices] = 0.0
        else:
            result = self.comm.allreduce(gradient, algorithm=self.algorithm)
        self.seconds += self.comm.now() - start
        itemsize = gradient.dtype.itemsize
        self.dense_bytes += steps * ring_nbytes(ranks, self._full_size * itemsize)
        return result, state

    def _by_method(
        self, method: Method, gradient: Stream, state: MethodState
    ) -> tuple[Stream, MethodState]:
        """Scale a method's mean to a sum; all methods but Dense take dense gradients."""
        ranks = gradient.dtype.type(self.comm.size)
        if method.is_exact:
            mean, state = method.aggregate(self.comm, gradient, state)
            scaled = mean.raw_values * ranks
            return Stream.unchecked(self.size, mean.raw_indices, scaled), state
        dense = self._to_dense(gradient)
        mean, state = method.aggregate(self.comm, dense, state)
        dense[gradient.indices] = 0.0
        return Stream.unchecked(self.size, None, mean * ranks), state

    def _to_dense(self, gradient: Stream) -> NDArray[Any]:
        """Write the gradient to a buffer; the caller zeroes its indices afterwards."""
        if self._buffer is None:
            self._buffer = np.zeros(self.size, gradient.dtype)
        kernels.scatter_assign(self._buffer, *gradient.pairs())
        return self._buffer
