"""Rendezvous of the processes of torch.distributed, to open a separate gloo group.

They use the store of a process group. Nothing is registered with torch.distributed, so
that its own numbering of groups does not change.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from torch import distributed as dist

from ...errors import TransportError
from ..timeouts import resolve_timeouts
from .transport import TorchTransport

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
LAUNCHER_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
STORE_SECONDS = 1.0  # by which a store may exceed its own limit

# Number of rendezvous of these ranks, the same on all of them.
_rendezvous_count: Counter[tuple[int, ...]] = Counter()

# Store of the launcher, rank and number of ranks, if torch.distributed is not initialized.
_launcher: list[tuple[Any, int, int]] = []


def open_transport(group: Any, timeout: float | None) -> TorchTransport:
    """Return a transport of the ranks of a process group. Collective.

    Args:
        group: A process group; None is the default group, or all processes of the job.
        timeout: Limit of every wait; None: see `resolve_timeouts`.
    """
    limit = _engine_limit(group)
    timeouts = resolve_timeouts(timeout, limit)
    if dist.is_initialized():
        timeouts = resolve_timeouts(timeout, limit, start_limit=limit)
        members = tuple(dist.get_process_group_ranks(group))
        rank = dist.get_rank()
        store = dist.distributed_c10d._get_default_store()
    elif group is None:
        store, rank, size = _launcher_store(timeouts.start)
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
        dist.PrefixStore(name, store), members.index(rank), len(members), timeouts
    )


def _launcher_store(seconds: float) -> tuple[Any, int, int]:
    """Return the launcher's store, rank and size, as init_process_group finds them."""
    if _launcher:
        return _launcher[0]
    if absent := [name for name in LAUNCHER_VARIABLES if name not in os.environ]:
        raise TransportError(
            f"from_group: torch.distributed is not initialized; call "
            f"torch.distributed.init_process_group first, or start with torchrun, which sets "
            f"{', '.join(absent)}"
        )
    address, port, rank, size = (os.environ[name] for name in LAUNCHER_VARIABLES)
    is_server = rank == "0" and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    options = _listening_options(address, int(port)) if is_server and int(port) else {}
    # As init_process_group does, but without waiting for all ranks: `meet` waits for
    # them, and finds those that are missing.
    arguments = address, int(port), int(size), is_server, timedelta(seconds=seconds), False
    try:
        store = _within(
            seconds, lambda: dist.TCPStore(*arguments, multi_tenant=True, **options)
        )
    except TimeoutError:
        raise TransportError(
            f"world: rank {rank}: what listens at {address}:{port} does not answer like rank 0 "
            f"of this job within {seconds:g} s; set MASTER_ADDR and MASTER_PORT to those of rank 0 "
            f"(SPARCML_START_TIMEOUT sets the limit)"
        ) from None
    except RuntimeError as error:
        if "EADDRINUSE" in str(error):
            raise TransportError(
                f"world: rank 0 cannot listen at {address}:{port}: the port is in use; "
                f"set MASTER_PORT to a free one"
            ) from None
        raise TransportError(
            f"world: rank {rank} cannot reach rank 0 at {address}:{port} within {seconds:g} s "
            f"({str(error).splitlines()[0]}); SPARCML_START_TIMEOUT sets the limit"
        ) from None
    _launcher.append((store, int(rank), int(size)))
    return _launcher[0]


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of a function that may never return, or raise a TimeoutError.

    A store waits without limit for the first answer of what listens at its port.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(seconds + STORE_SECONDS)


def _listening_options(address: str, port: int) -> dict[str, Any]:
    """Return the store's options for a socket of this address; empty: it opens its own.

    Its own listens on all addresses of the machine. That is needed for a host name, which may
    mean a loopback address on its own machine, and for an address that the machine itself
    does not know, such as that of a gateway.
    """
    address = "127.0.0.1" if address == "localhost" else address
    try:
        [(family, *_, place), *_] = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
        with socket.socket(family) as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
            # Before version 2.8, torch accepts a socket only without libuv.
            return {"master_listen_fd": bound.detach(), "use_libuv": False}
    except OSError:  # if the port is in use, the store may be one of this process
        return {}


def _engine_limit(group: Any) -> float:
    """Return the seconds that the process group itself waits for a rank."""
    if not dist.is_initialized():
        return float(dist.default_pg_timeout.total_seconds())
    group = group or dist.group.WORLD
    backends = [group._get_backend(device) for device in group._device_types]
    limits = [b.options._timeout for b in backends if hasattr(b, "options")]
    return float(max(limits, default=dist.default_pg_timeout).total_seconds())
