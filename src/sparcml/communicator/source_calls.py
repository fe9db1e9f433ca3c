"""Collectives of vectors that are computed one after the other, each from earlier results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .neighbor_calls import NeighborCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from ..stream import Stream


class VectorSource(Protocol):
    """Vectors for `add_from`. A method `compiled()` may return the same as compiled code."""

    def __len__(self) -> int:
        """Return the number of vectors."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the vectors, each after the one before was added."""


class ReducedSteps(Protocol):
    """Steps for `reduce_steps`.

    Attributes:
        compiled: The same steps as compiled code, which share their state.
        dtype: Data type of the vectors.
    """

    compiled: Any
    dtype: np.dtype[Any]

    def vector(self) -> Stream | None:
        """Return the vector of the current step, or None after the last."""

    def apply(self, result: Stream) -> None:
        """Apply the sum of the current vectors of all ranks, and begin the next step."""


class SourceCalls(NeighborCalls):
    """Collectives that run without Python between the vectors, where they are compiled."""

    if TYPE_CHECKING:  # defined by Communicator

        def allreduce(self, x: Any, op: Any = "sum", algorithm: str = "auto") -> Any:
            """Reduce over all ranks."""

    def add_from(self, source: VectorSource, out: Any) -> Any:
        """Add vectors of all ranks to an array as they are computed; return it. Collective.

        The same as `allgather_add` for each vector, but without Python between them where
        the source and the collectives are compiled.

        Args:
            source: Iterable of this rank's vectors, as many as on the other ranks. Each may
                depend on `out` after the vectors before. An attribute `compiled`, if it has one,
                is a function that returns its compiled form.
            out: Array of their size and dtype.
        """
        if self.size > 1 and len(source):
            compiled = getattr(source, "compiled", None)
            if compiled is not None and self._session.add_from(compiled(), out):
                return out
        for x in source:
            self.allgather_add(x, out)
        return out

    def reduce_steps(self, steps: ReducedSteps, algorithm: str = "auto") -> None:
        """Add up the vectors of steps over all ranks, and apply each sum. Collective.

        The same as `steps.apply(comm.allreduce(steps.vector()))` until there are no more, but
        without Python between the steps where the allreduce is compiled and was made before.

        Args:
            steps: This rank's steps, as many as on the other ranks.
            algorithm: Algorithm of the allreduces.
        """
        while True:
            if (prepared := self._session.prepared) is not None:
                try:
                    if prepared.reduce_steps(steps.compiled, steps.dtype, algorithm):
                        return
                except BaseException as error:
                    del prepared  # as in `allreduce`
                    self._session.fail_prepared(error)
                    raise
            x = steps.vector()
            if x is None:
                return
            steps.apply(self.allreduce(x, algorithm=algorithm))
