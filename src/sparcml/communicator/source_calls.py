"""Collectives of vectors that are computed one after the other, each from earlier results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .arguments import check_out
from .neighbor_calls import NeighborCalls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..stream import Stream

FLOAT64 = np.dtype(np.float64)


class ReducedSteps(Protocol):
    """Steps for `reduce_steps`.

    With an attribute `compiled`, the same steps as compiled code that shares their state, Python
    does not run between the steps.

    Attributes:
        dtype: Data type of the vectors.
    """

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

    def add_from(self, source: Iterable[Any], out: Any) -> Any:
        """Add vectors of all ranks to an array as they are computed; return it. Collective.

        The same as `allgather_add` for each vector, but without Python between them where
        the source and the collectives are compiled.

        Args:
            source: Iterable of this rank's vectors, as many as on the other ranks. Each may
                depend on `out` after the vectors before. Those of the solvers in this
                package also have a length and a compiled form, `source.compiled()`.
            out: Array of their size and dtype.
        """
        solver: Any = source
        if self.size > 1 and hasattr(source, "compiled") and len(solver):
            vectors = solver.compiled()
            target = check_out("add_from", out, vectors.size, FLOAT64)
            if self._session.add_from(vectors, target):
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
        compiled: Any = getattr(steps, "compiled", None)
        dtype = steps.dtype
        while True:
            prepared = None if compiled is None else self._session.prepared
            if prepared is not None:
                try:
                    if prepared.reduce_steps(compiled, dtype, algorithm):
                        return
                except BaseException as error:
                    self._session.fail_prepared(prepared, error)
                    del prepared  # as in `allreduce`
                    raise
            x = steps.vector()
            if x is None:
                return
            steps.apply(self.allreduce(x, algorithm=algorithm))
