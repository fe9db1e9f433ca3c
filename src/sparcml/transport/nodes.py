"""Which ranks share a machine: messages between them are cheap, and its link is shared."""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .virtual.links import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Transport

# Memory that processes share, with what it takes to notice a message; an assumption, the
# same for all engines.
MEMORY = Link(latency=20e-6, gap=5e-6, byte=0.3e-9)
DIGEST = 16  # bytes that stand for a machine
BOOT = "/proc/sys/kernel/random/boot_id"  # another for every machine that runs Linux


@dataclass(frozen=True)
class Nodes:
    """The node of every rank, and what a message inside of one costs."""

    of: tuple[int, ...]
    intra_node: Link = MEMORY

    def node_ranks(self, rank: int) -> tuple[int, ...]:
        """All ranks of this rank's node, ascending."""
        return self._members[self.of[rank]]

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """The lowest rank of each node, ascending."""
        return tuple(members[0] for members in self._members.values())

    @cached_property
    def largest(self) -> int:
        """How many ranks the fullest node has."""
        return max(map(len, self._members.values()))

    @property
    def is_hierarchy(self) -> bool:
        """Whether there are several nodes, and not each rank has its own."""
        return 1 < len(self.leaders) < len(self.of)

    def subgroup(self, members: Sequence[int]) -> Nodes:
        """The same for a group of these ranks."""
        return Nodes(tuple(self.of[member] for member in members), self.intra_node)

    @cached_property
    def _members(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for rank, node in enumerate(self.of):
            found.setdefault(node, []).append(rank)
        return {node: tuple(ranks) for node, ranks in found.items()}


def find_nodes(transport: Transport, place: str) -> Nodes:
    """Who else is at this place; all ranks call it, before anything else is sent."""
    # Of this rank and those after it.
    held = hashlib.blake2b(place.encode(), digest_size=DIGEST).digest()
    size, distance = transport.size, 1
    while distance < size:
        share = np.frombuffer(held[: DIGEST * (size - distance)], np.uint8)
        to, source = (transport.rank - distance) % size, (transport.rank + distance) % size
        held += transport.exchange(to, share, source).tobytes()
        distance *= 2
    places = [held[DIGEST * i : DIGEST * (i + 1)] for i in range(size)]
    places = places[size - transport.rank :] + places[: size - transport.rank]
    numbers: dict[bytes, int] = {}
    return Nodes(tuple(numbers.setdefault(place, len(numbers)) for place in places))


def here() -> str:
    """This machine. A network namespace is one: it may be part of an emulated cluster."""
    told: list[object] = [socket.gethostname()]
    with suppress(OSError):  # no Linux
        told += [Path("/proc/self/ns/net").stat().st_ino, Path(BOOT).read_text()]
    return "\n".join(map(str, told))
