"""A gloo group of our own: connections to all other ranks, which can be cut."""

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
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

AT_ONCE = timedelta(milliseconds=1)
SEVER, PROBE = 1000, 1001  # tags on which nothing is ever sent

OPS = {
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "prod": dist.ReduceOp.PRODUCT,
}


class Mesh:
    """This rank's connections to all others: two to each, one for each direction.

    Over one for both, two peers that exchange long messages often do so one after the other:
    10 MB each way at 1 Gbit/s were seen to take 85 ms at some times and 165 at others.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self._rank = rank
        self._peers = [peer for peer in range(size) if peer != rank]
        self.waiters = WaiterPool()
        options = dist.ProcessGroupGloo._Options()
        options._devices = _devices()
        options._threads = 2  # of gloo's own, for its collectives
        options._timeout = timedelta(seconds=timeout)
        self._to_higher, self._to_lower = (
            dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, options)
            for name in ("up", "down")
        )

    def _leaving(self, peer: int) -> Any:
        """The group on which this rank sends to a peer."""
        return self._to_higher if peer > self._rank else self._to_lower

    def _arriving(self, peer: int) -> Any:
        """The group on which it receives from it."""
        return self._to_higher if peer < self._rank else self._to_lower

    def send(self, peer: int, array: Bytes, tag: int) -> Operation:
        """Start sending; done when the peer has begun to receive and all is on its way."""
        work = self._leaving(peer).send([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array)

    def receive(self, peer: int, array: Bytes, tag: int, last: int) -> Operation:
        """Start receiving as many bytes as the array has, of which `last` ends them."""
        array[-1] = last ^ 0xFF
        work = self._arriving(peer).recv([_tensor(array)], peer, tag)
        return Operation(self.waiters, work, array, lambda: bool(array[-1] == last))

    def allreduce(self, array: NDArray[Any], op: str) -> Operation:
        """Start gloo's own allreduce, in place."""
        options = dist.AllreduceOptions()
        options.reduceOp = OPS[op]
        options.timeout = FOREVER
        work = self._to_higher.allreduce([_tensor(array)], options)
        return Operation(self.waiters, work, array)

    def dead(self) -> list[int]:
        """The peers whose connection is closed: nothing can be posted there."""
        found = []
        for peer in self._peers:
            try:
                nothing = [torch.empty(1, dtype=torch.uint8)]
                self._arriving(peer).recv(nothing, peer, PROBE)
            except RuntimeError:
                found.append(peer)
        return found

    def close(self) -> None:
        """Break all connections, so that every wait ends, here and at the peers."""
        for group in (self._to_higher, self._to_lower):
            for peer in self._peers:
                with contextlib.suppress(RuntimeError):
                    # The first one to run out of time closes them all.
                    nothing = [torch.empty(1, dtype=torch.uint8)]
                    group.recv(nothing, peer, SEVER).wait(AT_ONCE)
        self.waiters.end()
        del self._to_higher, self._to_lower, group


@cache
def _devices() -> list[Any]:
    """The network interfaces, opened once: a device that was cut is never given back."""
    make = dist.ProcessGroupGloo.create_device
    names = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")
    chosen = [make(interface=name) for name in names if name]
    return chosen or [dist.ProcessGroupGloo.create_default_device()]


class _Writable:
    """An array's memory as torch wants it: it takes read-only ones with a warning only."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(
        array if array.flags.writeable else np.asarray(_Writable(array))
    )
