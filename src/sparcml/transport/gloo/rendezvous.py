"""Where the processes of torch.distributed meet to open a group of our own.

They need a store, which each process group has. Nothing is registered with
torch.distributed: its own numbering of groups stays as it was.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from typing import Any

from torch import distributed as dist

from ...errors import TransportError
from .transport import TorchTransport

# How often these ranks have met; all count alike, since all come each time.
_met: Counter[tuple[int, ...]] = Counter()

# The store of the launcher, this rank and their number, if we have met there ourselves.
_job: list[tuple[Any, int, int]] = []


def open_transport(group: Any, timeout: float) -> TorchTransport:
    """SimulationEnded the ranks of a process group; None stands for all of the job."""
    if dist.is_initialized():
        members = tuple(dist.get_process_group_ranks(group))
        me = dist.get_rank()
        store = dist.distributed_c10d._get_default_store()
    elif group is None:
        store, me, size = _rendezvous(timeout)
        members = tuple(range(size))
    else:
        raise TransportError(
            "from_group: torch.distributed is not initialised; call "
            "torch.distributed.init_process_group first"
        )
    if me not in members:
        raise ValueError(f"from_group: rank {me} is not in this group of {len(members)}")
    _met[members] += 1
    # A job that torchrun has started anew finds the store as the last one has left it.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    name = f"sparcml:{attempt}:{_met[members]}:{'.'.join(map(str, members))}"
    return TorchTransport(
        dist.PrefixStore(name, store), members.index(me), len(members), timeout
    )


def _rendezvous(timeout: float) -> tuple[Any, int, int]:
    """As init_process_group would do it, from what the launcher says."""
    if _job:
        return _job[0]
    if "MASTER_ADDR" not in os.environ:
        raise TransportError(
            "from_group: torch.distributed is not initialised; call "
            "torch.distributed.init_process_group first, or start with torchrun"
        )
    limit = timedelta(seconds=timeout)
    try:
        store, rank, size = next(dist.rendezvous("env://", timeout=limit))
    except RuntimeError as error:
        raise TransportError(
            f"world: not all ranks have met at {os.environ['MASTER_ADDR']}:"
            f"{os.environ.get('MASTER_PORT')} within {timeout:g} s "
            f"({str(error).splitlines()[0]})"
        ) from None
    _job.append((store, rank, size))
    return _job[0]
