"""Two binary trees over the same ranks: an inner rank of one is a leaf of the other.

In the first tree the even ranks are inner nodes and the odd ranks are leaves. The second tree
is its mirror image if the number of ranks is even, and shifted by one rank if it is odd; then
one rank is an inner node of both.

Reference: Sanders, Speck, Träff: Two-tree Algorithms for Full Bandwidth Broadcast,
Reduction and Scan, Parallel Computing 2009; the numbering is that of NCCL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


UP, DOWN = 0, 1


class Step(NamedTuple):
    """One message: a chunk of one half of the vector, towards the root or away from it."""

    half: int
    direction: int
    source: int
    target: int
    chunk: int

    @property
    def wire_round(self) -> int:
        """Round in the header, the same on all links of a direction."""
        return 4 * self.chunk + 2 * self.half + self.direction


@dataclass(frozen=True)
class Tree:
    """A tree over ranks.

    Attributes:
        parents: Parent of every rank; None for the root.
        children: Children of every rank, ascending.
        depths: Distance of every rank from the root.
        heights: Distance of every rank from the deepest leaf below it.
    """

    parents: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]
    heights: tuple[int, ...]

    @classmethod
    def from_parents(cls, parents: list[int | None]) -> Tree:
        """Build the tree from the parent of every rank."""
        children: list[list[int]] = [[] for _ in parents]
        for rank, parent in enumerate(parents):
            if parent is not None:
                children[parent].append(rank)
        order = [parents.index(None)]  # parents before children
        for rank in order:
            order += children[rank]
        depths, heights = [0] * len(parents), [0] * len(parents)
        for rank in order:
            for child in children[rank]:
                depths[child] = depths[rank] + 1
        for rank in reversed(order):
            heights[rank] = max((heights[c] + 1 for c in children[rank]), default=0)
        return cls(
            tuple(parents), tuple(map(tuple, children)), tuple(depths), tuple(heights)
        )

    @property
    def height(self) -> int:
        """Number of links from the root to the deepest leaf."""
        return max(self.heights)

    def subtree(self, rank: int) -> list[int]:
        """Return a rank and all its descendants."""
        ranks = [rank]
        for member in ranks:
            ranks += self.children[member]
        return ranks


@lru_cache(maxsize=8)  # shared by all ranks of a simulation
def two_trees(ranks: int) -> tuple[Tree, Tree]:
    """Return both trees over `ranks` ranks."""
    first = [_parent(rank, ranks) for rank in range(ranks)]
    if ranks % 2 == 0:
        second = [None if p is None else ranks - 1 - p for p in reversed(first)]
    else:
        shifted = [None if p is None else (p + 1) % ranks for p in first]
        second = [shifted[-1], *shifted[:-1]]
    return Tree.from_parents(first), Tree.from_parents(second)


def _parent(rank: int, ranks: int) -> int | None:
    """Return the parent in the first tree: clear the lowest set bit, set the next one."""
    if rank == 0:
        return None
    bit = rank & -rank
    up = (rank ^ bit) | bit << 1
    return up if up < ranks else rank ^ bit


def schedule(rank: int, ranks: int, chunks: int) -> Iterator[list[Step]]:
    """Yield the messages that a rank sends and receives in each round.

    One chunk passes a link per round. The first one passes after two rounds for each link
    before it, since a chunk sent in one round is used by the end of the next.
    """
    links = []
    for half, tree in enumerate(two_trees(ranks)):
        for child in (rank, *tree.children[rank]):
            parent = tree.parents[child]
            if parent is not None:
                links_down = tree.height + tree.depths[child] - 1
                links.append(((half, UP, child, parent), tree.heights[child]))
                links.append(((half, DOWN, parent, child), links_down))
    links.sort()  # both ends of a link handle its messages in the same order
    for round in range(chunks + 4 * tree.height - 2):
        yield [
            Step(*link, round - 2 * links_before)
            for link, links_before in links
            if 0 <= round - 2 * links_before < chunks
        ]
