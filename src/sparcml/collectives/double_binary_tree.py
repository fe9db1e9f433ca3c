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
from functools import cache
from typing import TYPE_CHECKING

from ..stream import bounds, split
from ..stream.parts import blank, put
from ..stream.switch import densify
from .cost import Load, Problem, Round, union
from .trees import UP, Step, schedule, two_trees

if TYPE_CHECKING:
    from ..stream import Stream
    from ..transport import Message
    from .base import Call

CHUNK_BYTES = 1 << 19  # short enough to fill the trees soon, long enough to pay a message


def double_binary_tree(call: Call, x: Stream) -> Stream:
    """Sum over all ranks, on all ranks; dense."""
    progress = _Progress(call, densify(x))
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
        self.total = blank(x, x.blocks)

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
        put(self.total, self._edges[step.half][step.chunk], part)
        if self._children[step.half]:
            self._complete[step.half, step.chunk] = message


def chunk_edges(blocks: int, entry_bytes: float) -> tuple[list[int], list[int]]:
    """Where the chunks of both halves begin, and the ends; equally many of each."""
    first = blocks // 2
    wanted = math.ceil((blocks - first) * entry_bytes / CHUNK_BYTES)
    chunks = max(1, min(first, wanted))
    upper = bounds(blocks - first, chunks)
    return bounds(first, chunks), [first + edge for edge in upper]


def cost(rank: int, problem: Problem) -> list[Round]:
    """What this rank sends and adds or keeps, round by round."""
    trees = two_trees(problem.ranks)
    edges = chunk_edges(problem.blocks, problem.entry_bytes)

    @cache  # few of them differ
    def load(half: int, way: int, source: int, blocks: int) -> Load:
        summed = trees[half].below(source) if way == UP else range(problem.ranks)
        return union(problem, summed, blocks)

    def carried(step: Step) -> Load:
        blocks = edges[step.half][step.chunk + 1] - edges[step.half][step.chunk]
        return load(step.half, step.way, step.source, blocks)

    # A chunk passes elsewhere while this rank has nothing to do.
    idle = (union(problem, range(problem.ranks), edges[1][1] - edges[1][0]),)
    rounds = []
    for steps in schedule(rank, problem.ranks, len(edges[0]) - 1):
        sends = tuple((s.target, (carried(s),)) for s in steps if s.source == rank)
        waits = tuple(carried(s) for s in steps if s.target == rank)
        written = sum(load.blocks for load in waits)
        rounds.append(Round(sends, 0.0, written, waits if steps else idle))
    return rounds
