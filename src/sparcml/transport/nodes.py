"""Placement of ranks on nodes: ranks of one node share memory and the node's link."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from .bootstrap import allgather
from .virtual.links import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Transport

# Assumed for all engines: memory shared by processes, including the time to notice a message.
SHARED_MEMORY = Link(latency=20e-6, gap=5e-6, seconds_per_byte=0.3e-9)
DIGEST_BYTES = 16  # of a machine's identity


@dataclass(frozen=True)
class Nodes:
    """Placement of ranks on nodes.

    Attributes:
        of: Node of each rank.
        intra_node: Cost of a message between two ranks of one node.
        native_algorithm: Algorithm of the engine's own allreduce, see `native_nbytes`.
    """

    of: tuple[int, ...]
    intra_node: Link = SHARED_MEMORY
    native_algorithm: str = "ring"

    def node_ranks(self, rank: int) -> tuple[int, ...]:
        """Return all ranks of this rank's node, ascending."""
        return self._members[self.of[rank]]

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """Lowest rank of each node, ascending."""
        return tuple(members[0] for members in self._members.values())

    @cached_property
    def largest(self) -> int:
        """Number of ranks of the largest node."""
        return max(map(len, self._members.values()))

    @property
    def is_hierarchy(self) -> bool:
        """Whether there are several nodes, and some node has several ranks."""
        return 1 < len(self.leaders) < len(self.of)

    def subgroup(self, members: Sequence[int]) -> Nodes:
        """Return the placement of some of the ranks."""
        return replace(self, of=tuple(self.of[member] for member in members))

    @cached_property
    def _members(self) -> dict[int, tuple[int, ...]]:
        members: dict[int, list[int]] = {}
        for rank, node in enumerate(self.of):
            members.setdefault(node, []).append(rank)
        return {node: tuple(ranks) for node, ranks in members.items()}


def find_nodes(transport: Transport, machine: bytes) -> Nodes:
    """Return the placement of all ranks, by the identities of their machines. Collective."""
    digest = hashlib.blake2b(machine, digest_size=DIGEST_BYTES).digest()
    numbers: dict[bytes, int] = {}
    digests = allgather(transport, digest)
    of = tuple(numbers.setdefault(d, len(numbers)) for d in digests)
    return replace(transport.nodes, of=of)
