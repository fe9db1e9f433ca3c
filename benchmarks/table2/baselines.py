"""What the sparse collectives are compared with: dense vectors, by plain MPI.

Messages of our own collectives are coded as whatever is shorter, so that `master` or an
allgather of ours does not send the zeros of a dense vector. These here do. They poll as our
transport does: ranks that spin in MPI's own waits would take the cores from those at work.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MASTER, NAP = 0, 1e-4


class Plain:
    """All ranks of the job, on a communicator of its own."""

    def __init__(self) -> None:
        self.mpi = MPI.COMM_WORLD.Dup()

    def single_master(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Sum on all ranks: all send to one, which adds and sends back."""
        others = [r for r in range(self.mpi.size) if r != MASTER]
        if self.mpi.rank != MASTER:
            _wait(self.mpi.Isend(mine, MASTER).Test)
            total = np.empty_like(mine)
            _wait(self.mpi.Irecv(total, MASTER).Test)
            return total
        arriving = [np.empty_like(mine) for _ in others]
        requests = [self.mpi.Irecv(x, r) for x, r in zip(arriving, others, strict=True)]
        total = mine.copy()
        for request, part in zip(requests, arriving, strict=True):
            _wait(request.Test)
            total += part
        leaving = [self.mpi.Isend(total, rank) for rank in others]
        _wait(lambda: bool(MPI.Request.Testall(leaving)))
        return total

    def allgather(self, mine: NDArray[Any]) -> NDArray[Any]:
        """All ranks' vectors, one a row, by MPI's own allgather."""
        everyone = np.empty((self.mpi.size, mine.size), mine.dtype)
        _wait(self.mpi.Iallgather(mine, everyone).Test)
        return everyone


def _wait(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(NAP)
