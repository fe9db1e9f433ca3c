"""Two binary trees over the same ranks: who has children in one is a leaf of the other.

In the first tree the even ranks are inside and the odd ones are leaves. The second is
its mirror image if the number of ranks is even, and shifted by one if it is odd; then
one rank is inside of both.

Reference: Sanders, Speck, Träff: Two-tree Algorithms for Full Bandwidth Broadcast,
Reduction and Scan, Parallel Computing 2009; the numbering is that of NCCL.
"""

from __future__ import annotations

from dataclasses import dataclass


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
