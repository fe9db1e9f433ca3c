"""The first half of the split algorithms: each rank reduces one range of the vector.

Steps: 1 (P - 1 messages).
Bytes sent per rank: those of its own stream outside its own range.

The vector is cut into P ranges, and rank j owns range j. Every rank sends the part in
each range directly to its owner, beginning with the next rank so that not all talk to
rank 0 first; the owner adds the parts in the order of ranks, whichever came first. Its own
part it takes as it is, unless the quantizer is of those whose sums are of coded values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costs.workload import EntryCount, Round, Workload
from ..stream import range_offsets, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stream import Stream
    from .base import Call


def collect(
    call: Call, x: Stream, edges: Sequence[int] | None = None, turn: int = 0
) -> list[Stream]:
    """All ranks' parts of this rank's range, in the order of ranks.

    Ranges are of nearly equal size unless `edges` says where they begin.
    """
    call.edges = range_offsets(x.blocks, call.size) if edges is None else edges
    parts = split(x, call.edges)
    if call.quantizer is not None and call.quantizer.quantizes_own:
        _, parts[call.rank] = call.encode(parts[call.rank], turn)
    mine = parts[call.rank].read_only()  # a sum must not overwrite what `seen` will tell
    call.seen = list(parts)
    for step in range(1, call.size):
        owner = (call.rank + step) % call.size
        call.seen[owner] = call.send(owner, parts[owner], turn, see=call.wants_seen)
    received = {call.rank: mine}
    sources = [(call.rank - step) % call.size for step in range(1, call.size)]
    for source, message in call.arrivals(sources, turn):
        received[source] = call.decode(message, source, turn, mine.blocks)
    return [received[rank] for rank in range(call.size)]


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends and adds."""
    P, N = workload.ranks, workload.blocks
    edges = range_offsets(N, P)
    k = workload.nnz[rank]
    sends = []
    for step in range(1, P):
        owner = (rank + step) % P
        span = edges[owner + 1] - edges[owner]
        likely = k * span / N if N else 0.0
        load = EntryCount(max(0, k - (N - span)), likely, min(k, span), span)
        sends.append((owner, (load,)))
    if not sends:
        return []
    # Vectors without gaps are added without merging; the first of them is only copied.
    dense = sum(k for k in workload.nnz if k == N)
    return [Round(tuple(sends), (sum(workload.nnz) - dense) / P, max(0, dense - N) / P)]
