"""Dense allreduces of MPI and gloo, which every algorithm is compared with."""

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

from sparcml.launchers import TORCH_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sparcml import Communicator, Stream

TIMEOUT = timedelta(seconds=120)


class Contender(ABC):
    """An allreduce to time."""

    @abstractmethod
    def run(self) -> Stream | NDArray[Any]:
        """Return the sum."""

    def prepare(self) -> None:
        """Prepare a run; not timed."""
        return


class MpiAllreduce(Contender):
    """MPI's own blocking allreduce."""

    def __init__(self, comm: Communicator, dense: NDArray[Any]) -> None:
        from mpi4py import MPI

        del comm
        self._world = MPI.COMM_WORLD
        self._dense, self._total = dense, np.zeros_like(dense)

    def run(self) -> NDArray[Any]:
        """Return the sum."""
        self._world.Allreduce(self._dense, self._total)
        return self._total


class GlooAllreduce(Contender):
    """The allreduce of torch.distributed on gloo, which works in place."""

    def __init__(self, comm: Communicator, dense: NDArray[Any]) -> None:
        import torch
        import torch.distributed as dist

        _connect(comm)
        self._allreduce = dist.all_reduce
        self._dense = torch.from_numpy(dense)
        self._total = torch.empty_like(self._dense)

    def prepare(self) -> None:
        """Restore the vector that the last run overwrote."""
        self._total.copy_(self._dense)

    def run(self) -> NDArray[Any]:
        """Return the sum."""
        self._allreduce(self._total)
        return np.asarray(self._total.numpy())


BASELINES: dict[str, Callable[[Communicator, NDArray[Any]], Contender]] = {
    "mpi_allreduce": MpiAllreduce,
    "gloo_allreduce": GlooAllreduce,
}


def available() -> list[str]:
    """Return the baselines that can run here: installed, and not MPI under torchrun."""
    packages = {"mpi_allreduce": "mpi4py", "gloo_allreduce": "torch"}
    installed = [name for name in BASELINES if find_spec(packages[name])]
    if all(name in os.environ for name in TORCH_NAMES):
        return [name for name in installed if name != "mpi_allreduce"]
    return installed


def _connect(comm: Communicator) -> None:
    """Connect the ranks by gloo, once. Collective.

    Without MASTER_ADDR they meet at a file, which requires one machine.
    """
    import torch.distributed as dist

    if dist.is_initialized():
        return
    number = comm.broadcast(np.array([secrets.randbelow(2**50)], np.float64))
    file = Path(tempfile.gettempdir()) / f"sparcml-bench-{int(number[0])}"
    store = None if "MASTER_ADDR" in os.environ else dist.FileStore(str(file), comm.size)
    dist.init_process_group(
        "gloo", store=store, rank=comm.rank, world_size=comm.size, timeout=TIMEOUT
    )


def close() -> None:
    """Close the connections of gloo, if there are any."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_initialized():
        dist.destroy_process_group()
