"""Broadcast and gather of bytes between ranks that have no communicator yet."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .base import Message, Transport

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/net")


def broadcast(transport: Transport, data: bytes) -> bytes:
    """Return rank 0's bytes on every rank (binomial tree). Collective."""
    rank, size = transport.rank, transport.size
    message = _message(data)
    distance = 1
    while distance < size:
        distance *= 2
    while distance > 1:
        half = distance // 2
        if rank % distance == 0 and rank + half < size:
            transport.send(rank + half, message)
        elif rank % distance == half:
            message = transport.receive(rank - half)
        distance = half
    return message.tobytes()


def gather(transport: Transport, data: bytes) -> list[bytes]:
    """Return the bytes of all ranks on rank 0, an empty list elsewhere. Collective."""
    if transport.rank:
        transport.send(0, _message(data))
        return []
    received = (transport.receive(peer).tobytes() for peer in range(1, transport.size))
    return [data, *received]


def allgather(transport: Transport, block: bytes) -> list[bytes]:
    """Return the blocks of all ranks, which have the same length (Bruck). Collective."""
    rank, size, length = transport.rank, transport.size, len(block)
    gathered, distance = block, 1  # of this rank and the distance - 1 ranks after it
    while distance < size:
        outgoing = _message(gathered[: length * (size - distance)])
        to, source = (rank - distance) % size, (rank + distance) % size
        gathered += transport.exchange(to, outgoing, source).tobytes()
        distance *= 2
    blocks = [gathered[length * i : length * (i + 1)] for i in range(size)]
    return blocks[size - rank :] + blocks[: size - rank]


class Machine(NamedTuple):
    """Identity of the machine that a process runs on.

    A network namespace counts as a machine: it may be a node of an emulated cluster.

    Attributes:
        hostname: Host name.
        namespace: Network namespace, on Linux.
        boot_id: Identifier of the running system, on Linux.
    """

    hostname: str
    namespace: str
    boot_id: str

    @property
    def clock(self) -> str:
        """Identity of the monotonic clock, which namespaces of one system share."""
        return self.boot_id or self.hostname

    def encode(self) -> bytes:
        """Return the identity as one line per attribute."""
        return "\n".join(self).encode()


def this_machine() -> Machine:
    """Return the identity of this process's machine."""
    namespace = boot_id = ""
    with suppress(OSError):  # not Linux
        namespace = str(NAMESPACE.stat().st_ino)
        boot_id = BOOT_ID.read_text().strip()
    return Machine(platform.node(), namespace, boot_id)


def gather_hosts(transport: Transport) -> tuple[str, ...]:
    """Return the host names of the distinct machines on rank 0. Collective.

    A host with several network namespaces appears once per namespace.
    """
    machines = set(gather(transport, this_machine().encode()))
    return tuple(sorted(m.decode(errors="replace").partition("\n")[0] for m in machines))


def _message(data: bytes) -> Message:
    return np.frombuffer(data, np.uint8)
