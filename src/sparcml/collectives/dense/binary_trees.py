"""Two binary trees over the same ranks: who has children in one is a leaf of the other.

In the first tree the even ranks are inside and the odd ones are leaves. The second is
its mirror image if the number of ranks is even, and shifted by one if it is odd; then
one rank is inside of both.

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
    way: int
    source: int
    target: int
    chunk: int

    @property
    def turn(self) -> int:
        """Its round on the wire, which stays the same all the way down."""
        return 4 * self.chunk + 2 * self.half + self.way


@dataclass(frozen=True)
class Tree:
    """A tree over ranks.

    Attributes:
        parents: Of every rank; None for the root.
        children: Of every rank, ascending.
        depths: How far every rank is from the root.
        heights: How far every rank is from the deepest leaf below it.
    """

    parents: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]
    heights: tuple[int, ...]

    @classmethod
    def of(cls, parents: list[int | None]) -> Tree:
        """From every rank's parent."""
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
        """The number of steps from the root to the deepest leaf."""
        return max(self.heights)

    def below(self, rank: int) -> list[int]:
        """A rank and all its descendants."""
        found = [rank]
        for member in found:
            found += self.children[member]
        return found


@lru_cache(maxsize=8)  # all ranks of a simulation ask for the same
def two_trees(ranks: int) -> tuple[Tree, Tree]:
    """The pair for so many ranks."""
    first = [_parent(rank, ranks) for rank in range(ranks)]
    if ranks % 2 == 0:
        second = [None if p is None else ranks - 1 - p for p in reversed(first)]
    else:
        shifted = [None if p is None else (p + 1) % ranks for p in first]
        second = [shifted[-1], *shifted[:-1]]
    return Tree.of(first), Tree.of(second)


def _parent(rank: int, ranks: int) -> int | None:
    """In the first tree: clear the lowest set bit and set the next one."""
    if rank == 0:
        return None
    bit = rank & -rank
    up = (rank ^ bit) | bit << 1
    return up if up < ranks else rank ^ bit


def schedule(rank: int, ranks: int, chunks: int) -> Iterator[list[Step]]:
    """What this rank sends and receives, round by round.

    On a link a chunk passes in every round, the first one after as many rounds as the
    chunk needs to get there: two for each link before, since what is sent in one round is
    used by the end of the next.
    """
    links = []
    for half, tree in enumerate(two_trees(ranks)):
        for child in (rank, *tree.children[rank]):
            parent = tree.parents[child]
            if parent is not None:
                later = tree.height + tree.depths[child] - 1
                links.append(((half, UP, child, parent), tree.heights[child]))
                links.append(((half, DOWN, parent, child), later))
    links.sort()  # messages between the same two ranks: in the same order for both
    for turn in range(chunks + 4 * tree.height - 2):
        yield [
            Step(*link, turn - 2 * links_before)
            for link, links_before in links
            if 0 <= turn - 2 * links_before < chunks
        ]
