"""A separate gloo group: connections to all other ranks, which can be broken."""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed as dist

from .operations import FOREVER, Operation, WaiterPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

BREAK_TIMEOUT = timedelta(milliseconds=1)
BREAK, PROBE = 1000, 1001  # tags on which nothing is ever sent

OPS = {
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "prod": dist.ReduceOp.PRODUCT,
}


class Mesh:
    """This rank's connections to all other ranks: two per peer, one per direction.

    On one connection for both directions, two peers often exchange long messages one
    after the other: 10 MB each way at 1 Gbit/s took 85 ms or 165 ms.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self._rank = rank
        self._peers = [peer for peer in range(size) if peer != rank]
        self.waiters = WaiterPool()
        options = dist.ProcessGroupGloo._Options()
        options._devices = _devices()
        options._threads = 2  # of gloo, for its own collectives
        options._timeout = timedelta(seconds=timeout)
        self._to_higher, self._to_lower = (
            dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, options)
            for name in ("up", "down")
        )

    def _sending(self, peer: int) -> Any:
        """Return the group on which this rank sends to a peer."""
        return self._to_higher if peer > self._rank else self._to_lower

    def _receiving(self, peer: int) -> Any:
        """Return the group on which this rank receives from a peer."""
        return self._to_higher if peer < self._rank else self._to_lower

    def send(self, peer: int, array: Bytes, tag: int) -> Operation:
        """Start a send; it is complete when the peer receives and all bytes have left."""
        work = self._sending(peer).send([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array)

    def receive(
        self, peer: int, array: Bytes, tag: int, has_arrived: Callable[[], bool]
    ) -> Operation:
        """Start a receive of at most the array's size, see `Operation`."""
        work = self._receiving(peer).recv([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array, has_arrived)

    def allreduce(self, array: NDArray[Any], op: str) -> Operation:
        """Start gloo's own allreduce, in place."""
        options = dist.AllreduceOptions()
        options.reduceOp = OPS[op]
        options.timeout = FOREVER
        work = self._to_higher.allreduce([_tensor(array)], options)
        return Operation(self.waiters, work, array)

    def lost_peers(self) -> list[int]:
        """Return the peers whose connection is closed: nothing can be posted there."""
        lost = []
        for peer in self._peers:
            try:
                buffer = [torch.empty(1, dtype=torch.uint8)]
                self._receiving(peer).recv(buffer, peer, PROBE)
            except RuntimeError:
                lost.append(peer)
        return lost

    def close(self) -> None:
        """Break all connections, so that every wait ends, here and at the peers."""
        for group in (self._to_higher, self._to_lower):
            for peer in self._peers:
                with contextlib.suppress(RuntimeError):
                    # The first timeout closes all connections of the group.
                    buffer = [torch.empty(1, dtype=torch.uint8)]
                    group.recv(buffer, peer, BREAK).wait(BREAK_TIMEOUT)
        self.waiters.end()
        del self._to_higher, self._to_lower, group


@cache
def _devices() -> list[Any]:
    """Return the network interfaces, opened once: gloo never frees a broken device."""
    make = dist.ProcessGroupGloo.create_device
    names = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")
    chosen = [make(interface=name) for name in names if name]
    return chosen or [dist.ProcessGroupGloo.create_default_device()]


class _Writable:
    """An array's memory, marked writable: torch warns of read-only arrays."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(
        array if array.flags.writeable else np.asarray(_Writable(array))
    )
