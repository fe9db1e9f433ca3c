"""Baselines of the sparse collectives: dense vectors over plain MPI.

Our own collectives send the smaller format, so that `master` or allgather do not send the
zeros of a dense vector. These baselines do. They poll like our transport: ranks that spin in
MPI's waits would take the cores from ranks that compute.
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
        """Reduce on all ranks: all send to one, which adds and sends the sum back."""
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
        """Return the vectors of all ranks as rows, by MPI's allgather."""
        everyone = np.empty((self.mpi.size, mine.size), mine.dtype)
        _wait(self.mpi.Iallgather(mine, everyone).Test)
        return everyone


def _wait(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(NAP)
