"""Sparse allreduce to the k largest sums (Ok-Topk): lossy, and no larger on more ranks.

Steps: ceil(log2(P)), then 2 (P - 1 messages each); once in 32 calls ceil(log2(P)) more.
Bytes sent per rank: a header of 32 bytes for each other rank, its stream outside its
region, and the kept sums of the others: about 2 k (P - 1) / P entries in all if regions
stay balanced, where the paper allows 3. Once in 32 calls up to k magnitudes of each other
rank, once in 64 calls P - 1 numbers of each.
Fan-in: P - 1.

Each rank brings its own selection, and k is the largest number of entries of any rank. The
vector is cut into P regions that hold about as many entries each, however skewed they
are: every rank cuts its own indices into P equal chunks, and the mean of the cuts counts. As
in split_reduce, rank j adds what all ranks have in region j, in the order of ranks. Of
these sums only those as large as a threshold are kept and gathered. The threshold is the
k-th largest magnitude of all sums, so the result has k entries.

Regions are set anew every 64 calls and the threshold every 32, and are reused in between,
for vectors of the same size, block and dtype on the same communicator (vectors of one kind
that differ otherwise do better on a duplicate each). A reused threshold follows the data:
if it keeps less than 2/3 of what it should, it is lowered by 0.8 %, and raised if it keeps
more than 5/4. If it keeps less than 1/2 or more than twice as much, the next call computes
it anew; so does a call whose k leaves 2/3 to 5/4 of the k that it was computed for.

Magnitudes that equal the threshold are kept, all of them: the paper is strict, and would
keep nothing of values that are all alike. The magnitude of a block is its 2-norm. A sum of
zero is never kept; one that is not finite always is, and does not count for the threshold.
If k is the size of the vector, as with a dense one, nothing else is left out.

`seen` is what a rank brought to the sums that were kept; the rest of its selection is for
error feedback to keep. With a quantizer it includes the coding error of the owner.

Kept sums are gathered from where they are, not evened out between ranks before: if they
all lie in one region, its owner sends them P - 1 times. In the figure, of a first
call, rounds 4 to 6 carry the magnitudes; calls that reuse the threshold are without.

Reference: Li, Hoefler: Near-Optimal Sparse Allreduce for Distributed Deep Learning, PPoPP
2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import wire
from ...costs.workload import EntryCount, PayloadCount, Round, Workload, union
from ...errors import MismatchError, WireError
from ...stream import dense_is_smaller, join, range_offsets
from ...stream.ranges import restrict_to, take, without_fill
from .. import allgather, split_gather, split_reduce
from ..agree import compare
from . import ssar_split_allgather as ssar
from .oktopk_state import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ...transport import Message
    from ..base import Call

Cuts: TypeAlias = NDArray[np.uint32]
Magnitudes: TypeAlias = NDArray[Any]  # float32 or float64


def oktopk(call: Call, x: Stream) -> Stream:
    """The largest sums over all ranks, on all ranks."""
    known = load(call, x)
    cuts = own_cuts(x, call.size) if known.wants_edges() else None
    workload, messages = exchange_headers(call, x, cuts)
    if cuts is not None:
        known.edges = mean_edges(call, workload, messages)
    k, turn = max(workload.nnz), steps(call.size)

    reduced = call.add_many(split_reduce.collect(call, x, known.edges, turn))
    turn += 1

    sizes = magnitudes(call, reduced)
    chooses = k < x.blocks  # otherwise there is room for all
    computes = chooses and known.wants_threshold(k)
    if computes:
        known.threshold = kth_largest(call, x, sizes, k, turn)
        turn += steps(call.size)
    kept = keep(call, reduced, sizes, known.threshold if chooses else 0.0)
    # What was sent dense has zeros that were not kept.
    parts = [without_fill(part) for part in ssar.gather(call, kept, turn)]

    count = sum(part.nnz for part in parts)
    if computes:
        known.computed(k, count)
    elif chooses:
        known.reused(count)
    known.calls += 1
    if call.wants_seen:
        pairs = zip(call.seen, parts, strict=True)
        call.seen = [restrict_to(seen, part.indices) for seen, part in pairs]
    return join(parts, call.edges)


def steps(ranks: int) -> int:
    """Rounds of an allgather."""
    return (ranks - 1).bit_length()


def exchange_headers(
    call: Call, x: Stream, cuts: Cuts | None
) -> tuple[Workload, list[Message]]:
    """How many entries each rank brings, and the messages that may carry its cuts."""
    messages = allgather.allgather_messages(call, call.header_only(x, cuts))
    workload = compare(call, x, messages)
    if isinstance(workload, MismatchError):
        raise workload
    return workload, messages


def own_cuts(x: Stream, ranks: int) -> Cuts:
    """Where all but the first of P equal chunks of this rank's entries begin."""
    places = range_offsets(x.nnz, ranks)[1:-1]
    if x.raw_indices is None or not x.nnz:
        places = range_offsets(x.blocks, ranks)[1:-1]
        return np.array(places, np.uint32)
    return x.raw_indices[places]


def mean_edges(call: Call, workload: Workload, messages: Sequence[Message]) -> list[int]:
    """Where regions begin: the mean cuts of the ranks that bring entries, in integers."""
    bringing = [rank for rank, nnz in enumerate(workload.nnz) if nnz]
    if not bringing:
        return range_offsets(workload.blocks, call.size)
    total = np.zeros(call.size - 1, np.int64)
    for rank in bringing:
        with call.decoding_from(rank):
            total += _checked_cuts(messages[rank], call.size - 1, workload.blocks)
    return [0, *(total // len(bringing)).tolist(), workload.blocks]


def _checked_cuts(message: Message, count: int, blocks: int) -> NDArray[np.int64]:
    cuts = wire.auxiliary(message, np.dtype("<u4")).astype(np.int64)
    if len(cuts) != count + count % 2 or (np.diff(cuts[:count], append=blocks) < 0).any():
        raise WireError(f"{count} ascending cuts of {blocks} blocks were due")
    return cuts[:count]


def magnitudes(call: Call, x: Stream) -> Magnitudes:
    """Of each stored entry: its absolute value or, of a block, its norm; NaN is infinite.

    Blocks are summed in the order of their values, so that no instruction set differs.
    """
    with call.selecting(x):
        rows = x.raw_values.reshape(-1, x.block)
        sizes = np.abs(x.raw_values) if x.block == 1 else _norms(rows)
        sizes[np.isnan(sizes)] = np.inf
    return sizes


def _norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    squares, largest = np.zeros(len(rows)), np.zeros(len(rows))
    with np.errstate(over="ignore", under="ignore"):
        for column in rows.T:
            squares += np.square(column, dtype=np.float64)
            np.maximum(largest, np.abs(column), out=largest)
        # Squares of tiny values vanish; the block must not.
        return np.maximum(np.sqrt(squares), largest)


def kth_largest(call: Call, x: Stream, sizes: Magnitudes, k: int, turn: int) -> float:
    """The k-th largest finite magnitude of all regions; 0 if there are fewer."""
    with call.selecting(x):
        mine = _largest(sizes[(sizes > 0) & np.isfinite(sizes)], k)
    messages = allgather.allgather_messages(call, call.header_only(x, mine, turn), turn)
    everyones = np.concatenate(
        [_checked_sizes(call, m, rank, mine.dtype) for rank, m in enumerate(messages)]
    )
    with call.selecting(x):
        largest = _largest(everyones, k)
    return float(largest.min()) if len(largest) == k > 0 else 0.0


def _largest(sizes: Magnitudes, k: int) -> Magnitudes:
    """The k largest, or all, in no order."""
    first = len(sizes) - k
    return sizes if first <= 0 else np.partition(sizes, first)[first:]


def _checked_sizes(
    call: Call, message: Message, source: int, dtype: np.dtype[Any]
) -> Magnitudes:
    call.verify(message, source)
    with call.decoding_from(source):
        sizes = wire.auxiliary(message, dtype)
        if not np.isfinite(sizes).all():
            raise WireError("finite magnitudes were due")
    return sizes[sizes > 0]  # without padding


def keep(call: Call, reduced: Stream, sizes: Magnitudes, threshold: float) -> Stream:
    """The sums as large as the threshold, but no zeros."""
    with call.selecting(reduced):
        # In double precision: what was scaled need not be a float32.
        large = (sizes >= np.float64(threshold)) & (sizes > 0)
        return take(reduced, np.flatnonzero(large))


def cost(rank: int, workload: Workload) -> list[Round]:
    """What this rank sends in a call that sets regions and threshold, as the first does."""
    return _rounds(rank, workload, reusing=False)


def warm_cost(rank: int, workload: Workload) -> list[Round]:
    """What it sends in a call that reuses them."""
    return _rounds(rank, workload, reusing=True)


def _rounds(rank: int, workload: Workload, *, reusing: bool) -> list[Round]:
    P, N, total = workload.ranks, workload.blocks, union(workload, range(workload.ranks))
    if P == 1:
        return []
    k = max(workload.nnz)
    k = N if dense_is_smaller(k, N, workload.entry_bytes) else k
    cuts = 0 if reusing else P - 1
    greeting = PayloadCount(cuts, cuts, cuts, N, each=4)

    def sizes(_: int) -> EntryCount:
        likely, most = min(k, total.expected / P), min(k, total.max)
        return PayloadCount(
            0, likely, most, N, each=max(4, min(8, int(workload.entry_bytes)))
        )

    rounds = allgather.cost(rank, P, lambda _: greeting)
    sends = tuple(
        ((rank + step) % P, (_part(workload, (rank + step) % P, workload.nnz[rank]),))
        for step in range(1, P)
    )
    rounds.append(Round(sends, merged=sum(workload.nnz) / P))
    if k < N and not reusing:
        rounds += allgather.cost(rank, P, sizes)
    rounds += split_gather.cost(rank, P, _part(workload, rank, k, total.max))
    return [*rounds, Round(written=total.expected / P + 2 * k)]  # magnitudes, and joining


def _part(workload: Workload, owner: int, k: int, most: int | None = None) -> EntryCount:
    """A region's share of k entries. Regions follow the data, so that it may be any.

    Only where all ranks are full are their cuts known beforehand.
    """
    P, N = workload.ranks, workload.blocks
    if min(workload.nnz) < N:
        return EntryCount(0, k / P, k if most is None else most, N)
    edges = range_offsets(N, P)
    span = edges[owner + 1] - edges[owner]
    return EntryCount(span, span, span, span)
