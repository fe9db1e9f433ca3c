"""Sparse allreduce of the k largest entries of the result (Ok-Topk): lossy, and scalable.

Rounds: ceil(log2(P)), then 2 (P - 1 messages each); every 32 calls ceil(log2(P)) more.
Bytes sent per rank: a header of 32 bytes for each other rank, its stream outside its range,
and its selected entries P - 1 times: about 2 k (P - 1) / P entries in total if the ranges
are balanced, where the paper allows 3. Every 32 calls up to k magnitudes of each other
rank, every 64 calls P - 1 offsets of each.
Fan-in: P - 1.

Each rank contributes its own selection, and k is the largest nnz of any rank. The vector is
cut into P ranges with about the same number of entries, however skewed the data is: every
rank cuts its own indices into P equal parts, and the offsets are averaged over the ranks.
As in ssar_split_allgather, rank j reduces range j in rank order. Only the reduced entries
with a magnitude of at least a threshold are selected and gathered. The threshold is the
k-th largest magnitude of all reduced entries, so that the result has k entries.

The offsets are recomputed every 64 calls and the threshold every 32. In between they are
reused, for vectors of the same size, block and dtype on the same communicator; use one
duplicate each for vectors that differ otherwise. A reused threshold follows the data: it
is lowered by 0.8 % if it selects less than 2/3 of the entries that it should, and raised
if it selects more than 5/4. The next call recomputes it if it selects less than 1/2 or
more than 2 times as many, and so does a call whose k is not within 2/3 to 5/4 of the k that
it was computed for.

Magnitudes equal to the threshold are all selected: with the paper's strict comparison, a
vector of equal values would vanish. The magnitude of a block is its 2-norm. A reduced entry
of zero is never selected. One that is not finite always is, and is not counted for the
threshold. If k is the size of the vector, as for a dense one, nothing but zeros is
dropped.

`seen` is the contribution of a rank to the selected entries; error feedback keeps the rest
of its selection. With a quantizer it includes the quantization error of the owner.

Selected entries are gathered from their owners without balancing them first: if all of
them lie in one range, its owner sends them P - 1 times. The figure shows a first call, in
which rounds 4 to 6 carry the magnitudes; calls that reuse the threshold skip them.

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
from .. import allgather, split
from ..agree import compare
from ..base import Algorithm, register
from .oktopk_state import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ...transport import Message
    from ..call import Call

Cuts: TypeAlias = NDArray[np.uint32]
Magnitudes: TypeAlias = NDArray[Any]  # float32 or float64


def oktopk(call: Call, x: Stream) -> Stream:
    """Return the largest entries of the result on all ranks."""
    state = load(call, x)
    cuts = own_cuts(x, call.size) if state.needs_offsets() else None
    workload, messages = exchange_headers(call, x, cuts)
    if cuts is not None:
        state.offsets = mean_offsets(call, workload, messages)
    k, round = max(workload.nnz), allgather_rounds(call.size)

    reduced = call.add_many(split.scatter_ranges(call, x, state.offsets, round))
    round += 1

    sizes = magnitudes(call, reduced)
    selects = k < x.blocks
    recomputes = selects and state.needs_threshold(k)
    if recomputes:
        state.threshold = kth_largest(call, x, sizes, k, round)
        round += allgather_rounds(call.size)
    selected = select(call, reduced, sizes, state.threshold if selects else 0.0)
    # Ranges that were sent as dense have zeros that were not selected.
    parts = [without_fill(part) for part in split.gather_ranges(call, selected, round)]

    count = sum(part.nnz for part in parts)
    if recomputes:
        state.record_computed(k, count)
    elif selects:
        state.record_reused(count)
    state.calls += 1
    if call.wants_seen:
        pairs = zip(call.seen, parts, strict=True)
        call.seen = [restrict_to(seen, part.indices) for seen, part in pairs]
    return join(parts, call.offsets)


def allgather_rounds(ranks: int) -> int:
    """Return the number of rounds of an allgather."""
    return (ranks - 1).bit_length()


def exchange_headers(
    call: Call, x: Stream, cuts: Cuts | None
) -> tuple[Workload, list[Message]]:
    """Return the workload, and the messages that may carry the cuts of each rank."""
    messages = allgather.allgather_messages(call, call.header_only(x, cuts))
    workload = compare(call, x, messages)
    if isinstance(workload, MismatchError):
        raise workload
    return workload, messages


def own_cuts(x: Stream, ranks: int) -> Cuts:
    """Return the indices at which this rank's entries split into P equal parts."""
    if x.raw_indices is None or not x.nnz:
        return np.array(range_offsets(x.blocks, ranks)[1:-1], np.uint32)
    return x.raw_indices[range_offsets(x.nnz, ranks)[1:-1]]


def mean_offsets(call: Call, workload: Workload, messages: Sequence[Message]) -> list[int]:
    """Return the offsets of the ranges: the mean cuts of all ranks that have entries."""
    nonempty = [rank for rank, nnz in enumerate(workload.nnz) if nnz]
    if not nonempty:
        return range_offsets(workload.blocks, call.size)
    total = np.zeros(call.size - 1, np.int64)
    for rank in nonempty:
        with call.decoding_from(rank):
            total += _read_cuts(messages[rank], call.size - 1, workload.blocks)
    return [0, *(total // len(nonempty)).tolist(), workload.blocks]


def _read_cuts(message: Message, count: int, blocks: int) -> NDArray[np.int64]:
    cuts = wire.auxiliary(message, np.dtype("<u4")).astype(np.int64)
    if len(cuts) != count + count % 2 or (np.diff(cuts[:count], append=blocks) < 0).any():
        raise WireError(f"expected {count} ascending cuts of {blocks} blocks")
    return cuts[:count]


def magnitudes(call: Call, x: Stream) -> Magnitudes:
    """Return the absolute value of each entry, or the norm of each block; inf for NaN.

    Squares are added in the order of the values, so that no instruction set differs.
    """
    with call.time_selection(x):
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
        # The squares of tiny values underflow, but the block is not zero.
        return np.maximum(np.sqrt(squares), largest)


def kth_largest(call: Call, x: Stream, sizes: Magnitudes, k: int, round: int) -> float:
    """Return the k-th largest finite magnitude of all ranges; 0 if there are fewer."""
    with call.time_selection(x):
        own = _largest(sizes[(sizes > 0) & np.isfinite(sizes)], k)
    messages = allgather.allgather_messages(call, call.header_only(x, own, round), round)
    gathered = np.concatenate(
        [_read_sizes(call, m, rank, own.dtype) for rank, m in enumerate(messages)]
    )
    with call.time_selection(x):
        largest = _largest(gathered, k)
    return float(largest.min()) if len(largest) == k > 0 else 0.0


def _largest(sizes: Magnitudes, k: int) -> Magnitudes:
    """Return the k largest magnitudes, or all if there are fewer, in any order."""
    first = len(sizes) - k
    return sizes if first <= 0 else np.partition(sizes, first)[first:]


def _read_sizes(
    call: Call, message: Message, source: int, dtype: np.dtype[Any]
) -> Magnitudes:
    call.verify(message, source)
    with call.decoding_from(source):
        sizes = wire.auxiliary(message, dtype)
        if not np.isfinite(sizes).all():
            raise WireError("expected finite magnitudes")
    return sizes[sizes > 0]  # without padding


def select(call: Call, reduced: Stream, sizes: Magnitudes, threshold: float) -> Stream:
    """Return the nonzero entries with a magnitude of at least the threshold."""
    with call.time_selection(reduced):
        # In double precision: a scaled threshold need not be a float32.
        large = (sizes >= np.float64(threshold)) & (sizes > 0)
        return take(reduced, np.flatnonzero(large))


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a call that computes offsets and threshold, as the first does."""
    return _rounds(rank, workload, warm=False)


def warm_cost(rank: int, workload: Workload) -> list[Round]:
    """Return the rounds of a call that reuses offsets and threshold."""
    return _rounds(rank, workload, warm=True)


def _rounds(rank: int, workload: Workload, *, warm: bool) -> list[Round]:
    P, N, total = workload.ranks, workload.blocks, union(workload, range(workload.ranks))
    if P == 1:
        return []
    k = max(workload.nnz)
    k = N if dense_is_smaller(k, N, workload.entry_bytes) else k
    cuts = 0 if warm else P - 1
    header = PayloadCount(cuts, cuts, cuts, N, item_bytes=4)

    def sizes(_: int) -> EntryCount:
        item_bytes = max(4, min(8, int(workload.entry_bytes)))
        return PayloadCount(
            0, min(k, total.expected / P), min(k, total.max), N, item_bytes=item_bytes
        )

    rounds = allgather.cost(rank, P, lambda _: header)
    owners = [(rank + step) % P for step in range(1, P)]
    sends = tuple(
        (owner, (_part(workload, owner, workload.nnz[rank]),)) for owner in owners
    )
    rounds.append(Round(sends, merged=sum(workload.nnz) / P))
    if k < N and not warm:
        rounds += allgather.cost(rank, P, sizes)
    rounds += split.gather_cost(rank, P, _part(workload, rank, k, total.max))
    return [*rounds, Round(written=total.expected / P + 2 * k)]  # magnitudes, joining


def _part(workload: Workload, owner: int, k: int, maximum: int | None = None) -> EntryCount:
    """Return a range's part of k entries. Its length depends on the data.

    The offsets are known in advance only if all ranks are full.
    """
    P, N = workload.ranks, workload.blocks
    if min(workload.nnz) < N:
        return EntryCount(0, k / P, k if maximum is None else maximum, N)
    offsets = range_offsets(N, P)
    span = offsets[owner + 1] - offsets[owner]
    return EntryCount(span, span, span, span)


register(
    Algorithm(
        "oktopk",
        17,
        oktopk,
        cost,
        supports_quantization=True,
        lossy=True,
        warm_cost=warm_cost,
    )
)
