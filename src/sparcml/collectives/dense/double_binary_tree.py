"""Dense allreduce over two binary trees, each for half of the vector, in chunks.

Steps: C + 4 h - 2 for C chunks in trees of height h, which is about log2(P).
Bytes sent per rank: at most 2 times those of the dense vector; about 2 log2(P) latencies
and 2 N values in all, since chunks follow each other closely.
Fan-in: at most 4: two children and a parent in one tree, a parent in the other.

Chunks are added on the way up and, once whole, passed down as they are. Whoever is inside
of one tree is a leaf of the other, so every link is busy both ways. Height and depth say
in which step a chunk passes a rank: all ranks know who sends what to whom, and when.

Reference: Sanders, Speck, Träff: Two-tree Algorithms for Full Bandwidth Broadcast,
Reduction and Scan, Parallel Computing 2009; in NCCL since 2.4.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ...costs.workload import EntryCount, Round, Workload, union
from ...stream import range_offsets, split
from ...stream.ranges import empty, write_range
from .binary_trees import UP, Step, Tree, schedule, two_trees

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...stream import Stream
    from ...transport import Message
    from ..base import Call

CHUNK_BYTES = 1 << 19  # short enough to fill the trees soon, long enough to pay a message


def double_binary_tree(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    progress = _Progress(call, call.densify(x))
    due: list[Step] = []
    rounds = (*schedule(call.rank, call.size, progress.chunks), [])
    for turn, steps in enumerate(rounds):
        for step in steps:
            if step.source == call.rank:
                progress.send(step, turn)
        # Of the round before: so the link has work while this rank waits and adds.
        arrivals = call.arrivals([step.source for step in due], turn - 1)
        for step, (_, message) in zip(due, arrivals, strict=True):
            progress.receive(step, message)
        due = [step for step in steps if step.target == call.rank]
    return progress.total


class _Progress:
    """What one rank has of each chunk: a sum so far, a message to pass on, the result.

    Nothing is kept longer than needed: the memory of one chunk serves a later one.
    """

    def __init__(self, call: Call, x: Stream) -> None:
        self._call = call
        self._children = [tree.children[call.rank] for tree in two_trees(call.size)]
        self._edges = chunk_edges(x.blocks, x.entry_bytes)
        self.chunks = len(self._edges[0]) - 1
        self._sums = {
            (half, chunk): part
            for half, edges in enumerate(self._edges)
            for chunk, part in enumerate(split(x, edges))
        }
        self._complete: dict[tuple[int, int], Message] = {}
        self.total = empty(x, x.blocks)

    def send(self, step: Step, turn: int) -> None:
        here = step.half, step.chunk
        if step.way == UP:
            message, _ = self._call.encode(self._sums.pop(here), step.turn)
            self._call.send_message(step.target, message, turn)
            return
        if here in self._sums:  # the root: nobody sends it down to here
            self._keep(step, *self._call.encode(self._sums.pop(here), step.turn))
        self._call.send_message(step.target, self._complete[here], turn)
        if step.target == self._children[step.half][-1]:
            del self._complete[here]

    def receive(self, step: Step, message: Message) -> None:
        here = step.half, step.chunk
        start, end = self._edges[step.half][step.chunk : step.chunk + 2]
        part = self._call.decode(message, step.source, step.turn, end - start)
        if step.way == UP:
            self._sums[here] = self._call.add(part, self._sums[here])
        else:
            self._keep(step, message, part)

    def _keep(self, step: Step, message: Message, part: Stream) -> None:
        write_range(self.total, self._edges[step.half][step.chunk], part)
        if self._children[step.half]:
            self._complete[step.half, step.chunk] = message


def chunk_edges(blocks: int, entry_bytes: float) -> tuple[list[int], list[int]]:
    """Where the chunks of both halves begin, and the ends; equally many of each."""
    first = blocks // 2
    wanted = math.ceil((blocks - first) * entry_bytes / CHUNK_BYTES)
    chunks = max(1, min(first, wanted))
    upper = range_offsets(blocks - first, chunks)
    return range_offsets(first, chunks), [first + edge for edge in upper]


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds or keeps, round by round."""
    edges = chunk_edges(workload.blocks, workload.entry_bytes)
    carried = _carried(workload)
    rounds = []
    for steps in schedule(rank, workload.ranks, len(edges[0]) - 1):
        spans = [edges[s.half][s.chunk + 1] - edges[s.half][s.chunk] for s in steps]
        loads = [carried(s, span) for s, span in zip(steps, spans, strict=True)]
        rounds.append(_round(rank, steps, loads))
    return rounds


def pipelined_cost(rank: int, workload: Workload) -> list[Round]:
    """The same for estimates: the way of the first chunk, and all that follow closely.

    That takes a round a link, up and down again. Whether or not this rank has a part in
    one, the chunk passes somewhere, mostly to two ranks or from two.
    """
    edges = chunk_edges(workload.blocks, workload.entry_bytes)
    chunks, span = len(edges[0]) - 1, edges[1][1] - edges[1][0]
    carried = _carried(workload)
    everyone = union(workload, range(workload.ranks), span)
    pairs = zip(*map(_widths, two_trees(workload.ranks)), strict=True)
    widths = [max(of_both) for of_both in pairs]
    links, rounds = [], []
    first = list(schedule(rank, workload.ranks, 1))[::2]  # none are sent in between
    for steps, width in zip(first, widths, strict=True):
        links += steps
        found = _round(rank, steps, [carried(s, span) for s in steps])
        waits = (everyone,) * width
        rounds.append(Round(found.sends, written=width * span, receives=waits))
    if chunks > 1:
        rest = _round(rank, links, [carried(s, span) for s in links])
        rounds.append(replace(rest, repeat=chunks - 1))
    return rounds


def _round(rank: int, steps: list[Step], loads: list[EntryCount]) -> Round:
    pairs = list(zip(steps, loads, strict=True))
    sends = tuple((s.target, (load,)) for s, load in pairs if s.source == rank)
    waits = tuple(load for s, load in pairs if s.target == rank)
    return Round(sends, written=sum(load.blocks for load in waits), receives=waits)


def _carried(workload: Workload) -> Callable[[Step, int], EntryCount]:
    """What a step carries of so many blocks."""
    trees = two_trees(workload.ranks)

    @cache  # few of them differ
    def load(half: int, way: int, source: int, blocks: int) -> EntryCount:
        summed = trees[half].below(source) if way == UP else range(workload.ranks)
        return union(workload, summed, blocks)

    return lambda step, blocks: load(step.half, step.way, step.source, blocks)


def _widths(tree: Tree) -> list[int]:
    """How many messages meet at a rank at most, by links from the leaves and back."""
    ups, downs = [0] * tree.height, [0] * tree.height
    for rank, children in enumerate(tree.children):
        heights = [tree.heights[child] for child in children]
        for height in heights:
            ups[height] = max(ups[height], heights.count(height))
        if children:
            depth = tree.depths[rank]
            downs[depth] = max(downs[depth], len(children))
    return ups + downs
