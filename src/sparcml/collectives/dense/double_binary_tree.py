"""Dense allreduce over two binary trees, each for half of the vector, in chunks.

Rounds: C + 4 h - 2 for C chunks in trees of height h, which is about log2(P).
Bytes sent per rank: at most 2 times the dense vector; about 2 log2(P) latencies and 2 N
values in total, since chunks are pipelined.
Fan-in: at most 4: two children and a parent in one tree, a parent in the other.

Chunks are added on the way up and, once complete, sent down as they are. An inner rank of
one tree is a leaf of the other, so that every link is busy in both directions. The height
and depth of a rank determine the round in which a chunk passes it, so that all ranks know
the schedule without communication.

Reference: Sanders, Speck, Träff: Two-tree Algorithms for Full Bandwidth Broadcast,
Reduction and Scan, Parallel Computing 2009; in NCCL since 2.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...costs.workload import EntryCount, Round, Workload, union
from ...stream import range_offsets, split
from ...stream.ranges import empty, write_range
from ..base import Algorithm, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...stream import Stream
    from ...transport import Message
    from ..call import Call


UP, DOWN = 0, 1
CHUNK_BYTES = 1 << 19  # short enough to fill the trees soon, long enough for a message


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
    """Return both trees over `ranks` ranks: an inner rank of one is a leaf of the other.

    In the first tree the even ranks are inner nodes and the odd ranks are leaves. The second
    tree is its mirror image if the number of ranks is even, and shifted by one rank if it is
    odd; then one rank is an inner node of both. The numbering is that of NCCL.
    """
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


def double_binary_tree(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks."""
    state = TreeState(call, call.densify(x))
    expected: list[Step] = []
    rounds = (*schedule(call.rank, call.size, state.chunks), [])
    for round, steps in enumerate(rounds):
        for step in steps:
            if step.source == call.rank:
                state.send(step, round)
        # Receive the previous round: the link is busy while this rank waits and adds.
        arrivals = call.arrivals([step.source for step in expected], round - 1)
        for step, (_, message) in zip(expected, arrivals, strict=True):
            state.receive(step, message)
        expected = [step for step in steps if step.target == call.rank]
    return state.result


class TreeState:
    """Chunks of one rank: partial results, messages to send down, and the result.

    Partial results and messages are dropped after their last use, so that later chunks can
    reuse their memory.
    """

    def __init__(self, call: Call, x: Stream) -> None:
        self._call = call
        self._children = [tree.children[call.rank] for tree in two_trees(call.size)]
        self._offsets = chunk_offsets(x.blocks, x.entry_bytes)
        self.chunks = len(self._offsets[0]) - 1
        self._partial = {
            (half, chunk): part
            for half, offsets in enumerate(self._offsets)
            for chunk, part in enumerate(split(x, offsets))
        }
        self._complete: dict[tuple[int, int], Message] = {}
        self.result = empty(x, x.blocks)

    def send(self, step: Step, round: int) -> None:
        """Send a chunk to its target."""
        key = step.half, step.chunk
        if step.direction == UP:
            message, _ = self._call.encode(self._partial.pop(key), step.wire_round)
            self._call.send_message(step.target, message, round)
            return
        if key in self._partial:  # at the root, where the chunk is complete
            self._store(step, *self._call.encode(self._partial.pop(key), step.wire_round))
        self._call.send_message(step.target, self._complete[key], round)
        if step.target == self._children[step.half][-1]:
            del self._complete[key]

    def receive(self, step: Step, message: Message) -> None:
        """Add a chunk on its way up, or store a complete one."""
        key = step.half, step.chunk
        start, end = self._offsets[step.half][step.chunk : step.chunk + 2]
        part = self._call.decode(message, step.source, step.wire_round, end - start)
        if step.direction == UP:
            self._partial[key] = self._call.add(part, self._partial[key])
        else:
            self._store(step, message, part)

    def _store(self, step: Step, message: Message, part: Stream) -> None:
        write_range(self.result, self._offsets[step.half][step.chunk], part)
        if self._children[step.half]:
            self._complete[step.half, step.chunk] = message


def chunk_offsets(blocks: int, entry_bytes: float) -> tuple[list[int], list[int]]:
    """Return the offsets of the chunks of both halves, with the same number of chunks."""
    first = blocks // 2
    wanted = math.ceil((blocks - first) * entry_bytes / CHUNK_BYTES)
    chunks = max(1, min(first, wanted))
    upper = range_offsets(blocks - first, chunks)
    return range_offsets(first, chunks), [first + offset for offset in upper]


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a rank."""
    offsets = chunk_offsets(workload.blocks, workload.entry_bytes)
    count_of = _count_function(workload)
    rounds = []
    for steps in schedule(rank, workload.ranks, len(offsets[0]) - 1):
        spans = [offsets[s.half][s.chunk + 1] - offsets[s.half][s.chunk] for s in steps]
        counts = [count_of(s, span) for s, span in zip(steps, spans, strict=True)]
        rounds.append(_round(rank, steps, counts))
    return rounds


def pipelined_cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of the first chunk, and one repeated round for all further chunks.

    The first chunk takes one round per link, up and down again. In each of these rounds it
    passes some link, whether or not this rank takes part, and mostly two at one rank.
    """
    offsets = chunk_offsets(workload.blocks, workload.entry_bytes)
    chunks, span = len(offsets[0]) - 1, offsets[1][1] - offsets[1][0]
    count_of = _count_function(workload)
    result = union(workload, range(workload.ranks), span)
    pairs = zip(*map(_max_fan_in, two_trees(workload.ranks)), strict=True)
    fan_ins = [max(of_both) for of_both in pairs]
    all_steps, rounds = [], []
    first_chunk = list(schedule(rank, workload.ranks, 1))[::2]  # nothing is sent in between
    for steps, fan_in in zip(first_chunk, fan_ins, strict=True):
        all_steps += steps
        sends = _round(rank, steps, [count_of(s, span) for s in steps]).sends
        receives = (result,) * fan_in
        rounds.append(Round(sends, written=fan_in * span, receives=receives))
    if chunks > 1:
        rest = _round(rank, all_steps, [count_of(s, span) for s in all_steps])
        rounds.append(replace(rest, repeat=chunks - 1))
    return rounds


def _round(rank: int, steps: list[Step], counts: list[EntryCount]) -> Round:
    pairs = list(zip(steps, counts, strict=True))
    sends = tuple((step.target, (count,)) for step, count in pairs if step.source == rank)
    receives = tuple(count for step, count in pairs if step.target == rank)
    return Round(sends, written=sum(c.blocks for c in receives), receives=receives)


def _count_function(workload: Workload) -> Callable[[Step, int], EntryCount]:
    """Return a function that gives the entry count of a step, for a number of blocks."""
    trees = two_trees(workload.ranks)

    @cache  # few of them differ
    def count(half: int, direction: int, source: int, blocks: int) -> EntryCount:
        everyone = range(workload.ranks)
        ranks = trees[half].subtree(source) if direction == UP else everyone
        return union(workload, ranks, blocks)

    return lambda step, blocks: count(step.half, step.direction, step.source, blocks)


def _max_fan_in(tree: Tree) -> list[int]:
    """Return the largest number of messages at one rank, per link up and down the tree."""
    up, down = [0] * tree.height, [0] * tree.height
    for rank, children in enumerate(tree.children):
        heights = [tree.heights[child] for child in children]
        for height in heights:
            up[height] = max(up[height], heights.count(height))
        if children:
            depth = tree.depths[rank]
            down[depth] = max(down[depth], len(children))
    return up + down


register(
    Algorithm(
        "double_binary_tree",
        14,
        double_binary_tree,
        cost,
        is_dense=True,
        planned=False,
        pipelined_cost=pipelined_cost,
    )
)
