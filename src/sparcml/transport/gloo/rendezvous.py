"""Rendezvous of the processes of torch.distributed, to open a separate gloo group.

They use the store of a process group. Nothing is registered with torch.distributed, so
that its own numbering of groups does not change.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from typing import Any

from torch import distributed as dist

from ...errors import TransportError
from .transport import TorchTransport

# Number of rendezvous of these ranks, the same on all of them.
_rendezvous_count: Counter[tuple[int, ...]] = Counter()

# Store of the launcher, rank and number of ranks, if torch.distributed is not initialized.
_launcher: list[tuple[Any, int, int]] = []


def open_transport(group: Any, timeout: float) -> TorchTransport:
    """Return a transport of the ranks of a process group. Collective.

    Args:
        group: A process group; None is the default group, or all processes of the job.
        timeout: Seconds to open it, and of every wait.
    """
    if dist.is_initialized():
        members = tuple(dist.get_process_group_ranks(group))
        rank = dist.get_rank()
        store = dist.distributed_c10d._get_default_store()
    elif group is None:
        store, rank, size = _launcher_store(timeout)
        members = tuple(range(size))
    else:
        raise TransportError(
            "from_group: torch.distributed is not initialized; call "
            "torch.distributed.init_process_group first"
        )
    if rank not in members:
        raise ValueError(
            f"from_group: process_group must contain rank {rank}, got {len(members)} "
            f"other ranks"
        )
    _rendezvous_count[members] += 1
    # A job that torchrun has restarted finds the keys of the previous attempt in the store.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    count = _rendezvous_count[members]
    name = f"sparcml:{attempt}:{count}:{'.'.join(map(str, members))}"
    return TorchTransport(
        dist.PrefixStore(name, store), members.index(rank), len(members), timeout
    )


def _launcher_store(timeout: float) -> tuple[Any, int, int]:
    """Return the launcher's store, rank and size, as init_process_group finds them."""
    if _launcher:
        return _launcher[0]
    if "MASTER_ADDR" not in os.environ:
        raise TransportError(
            "from_group: torch.distributed is not initialized; call "
            "torch.distributed.init_process_group first, or start with torchrun"
        )
    limit = timedelta(seconds=timeout)
    try:
        store, rank, size = next(dist.rendezvous("env://", timeout=limit))
    except RuntimeError as error:
        raise TransportError(
            f"world: not all ranks have connected to {os.environ['MASTER_ADDR']}:"
            f"{os.environ.get('MASTER_PORT')} within {timeout:g} s "
            f"({str(error).splitlines()[0]})"
        ) from None
    _launcher.append((store, rank, size))
    return _launcher[0]
