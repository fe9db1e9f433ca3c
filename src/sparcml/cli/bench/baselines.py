"""Dense allreduces of others, on dense vectors that are ready: what ours must beat."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from abc import ABC, abstractmethod
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sparcml import Communicator, Stream

PATIENCE = timedelta(seconds=120)


class Job(ABC):
    """Something to time."""

    @abstractmethod
    def run(self) -> Stream | NDArray[Any]:
        """The sum."""

    def prepare(self) -> None:
        """What must be done before each run, and is not timed."""
        return


class MpiPeer(Job):
    """MPI's own, blocking."""

    def __init__(self, comm: Communicator, dense: NDArray[Any]) -> None:
        from mpi4py import MPI

        del comm
        self._world = MPI.COMM_WORLD
        self._dense, self._total = dense, np.zeros_like(dense)

    def run(self) -> NDArray[Any]:
        """The sum."""
        self._world.Allreduce(self._dense, self._total)
        return self._total


class GlooPeer(Job):
    """That of torch.distributed, on gloo: in place, so what it overwrites is copied before."""

    def __init__(self, comm: Communicator, dense: NDArray[Any]) -> None:
        import torch
        import torch.distributed as dist

        _meet(comm)
        self._allreduce = dist.all_reduce
        self._dense = torch.from_numpy(dense)
        self._total = torch.empty_like(self._dense)

    def prepare(self) -> None:
        """Bring the vector back."""
        self._total.copy_(self._dense)

    def run(self) -> NDArray[Any]:
        """The sum."""
        self._allreduce(self._total)
        return np.asarray(self._total.numpy())


PEERS: dict[str, Callable[[Communicator, NDArray[Any]], Job]] = {
    "mpi_allreduce": MpiPeer,
    "gloo_allreduce": GlooPeer,
}


def available() -> list[str]:
    """Those that are installed here."""
    needs = {"mpi_allreduce": "mpi4py", "gloo_allreduce": "torch"}
    return [name for name in PEERS if find_spec(needs[name])]


def _meet(comm: Communicator) -> None:
    """Open gloo's connections between the ranks, once.

    Without MASTER_ADDR they meet at a file, so they must be on one machine.
    """
    import torch.distributed as dist

    if dist.is_initialized():
        return
    number = comm.broadcast(np.array([secrets.randbelow(2**50)], np.float64))
    file = Path(tempfile.gettempdir()) / f"sparcml-bench-{int(number[0])}"
    store = None if "MASTER_ADDR" in os.environ else dist.FileStore(str(file), comm.size)
    dist.init_process_group(
        "gloo", store=store, rank=comm.rank, world_size=comm.size, timeout=PATIENCE
    )


def close() -> None:
    """End what `_meet` has opened."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_initialized():
        dist.destroy_process_group()
