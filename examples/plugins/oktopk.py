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

This file is a plug-in: `import oktopk` registers the algorithm, and the folder must be on the
path of Python. `SPARCML_PLUGINS=oktopk sparcml fit ...` imports it for commands. As a script
it compares the bytes of its calls with those of the lossless allreduce:

    python examples/plugins/oktopk.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import sparcml
from sparcml import wire
from sparcml.collectives import Algorithm, Shape, allgather, register, split
from sparcml.collectives.agree import compare
from sparcml.costs.workload import EntryCount, PayloadCount, Round, Workload, union
from sparcml.errors import MismatchError, WireError
from sparcml.stream import dense_is_smaller, join, range_offsets
from sparcml.stream.ranges import restrict_to, take, without_fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparcml import Communicator, Stream
    from sparcml.collectives import Call
    from sparcml.transport import Message

Cuts: TypeAlias = NDArray[np.uint32]
Magnitudes: TypeAlias = NDArray[Any]  # float32 or float64

OFFSETS_EVERY, THRESHOLD_EVERY = 64, 32  # calls
SCALE = 1.008  # factor that raises or lowers a threshold
MAX_SHAPES = 256  # shapes that are remembered, P + 1 numbers each


def oktopk(call: Call, x: Stream) -> Stream:
    """Return the largest entries of the result on all ranks."""
    state = load(call, x)
    cuts = own_cuts(x, call.size) if state.needs_offsets() else None
    workload, messages = exchange_headers(call, x, cuts)
    if cuts is not None:
        state.offsets = mean_offsets(call, workload, messages)
    k, rounds = max(workload.nnz), allgather_rounds(call.size)

    reduced = call.add_many(split.scatter_ranges(call, x, state.offsets, rounds))
    rounds += 1

    sizes = magnitudes(call, reduced)
    selects = k < x.blocks
    recomputes = selects and state.needs_threshold(k)
    if recomputes:
        state.threshold = kth_largest(call, x, sizes, k, rounds)
        rounds += allgather_rounds(call.size)
    selected = select(call, reduced, sizes, state.threshold if selects else 0.0)
    # Ranges that were sent as dense have zeros that were not selected.
    parts = [without_fill(part) for part in split.gather_ranges(call, selected, rounds)]

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


def kth_largest(call: Call, x: Stream, sizes: Magnitudes, k: int, start: int) -> float:
    """Return the k-th largest finite magnitude of all ranges; 0 if there are fewer."""
    with call.time_selection(x):
        own = _largest(sizes[(sizes > 0) & np.isfinite(sizes)], k)
    messages = allgather.allgather_messages(call, call.header_only(x, own, start), start)
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


@dataclass
class OkTopkState:
    """State between calls, for vectors of one size, block and dtype.

    It belongs to one communicator; a duplicate starts without it. All ranks make the same
    calls and decide by values that all of them know, so that they hold the same state.

    Attributes:
        calls: Number of calls so far.
        offsets: Offsets of the ranges.
        threshold: Smallest magnitude that is selected.
        k: Number of entries that the threshold was computed for.
        selected: Number of entries that it selected then: k, but for ties and zeros.
        recompute_at: Call that recomputes it at the latest.
    """

    calls: int = 0
    offsets: Sequence[int] = ()
    threshold: float = 0.0
    k: int = 0
    selected: int = 0
    recompute_at: int = 0

    def needs_offsets(self) -> bool:
        """Whether this call recomputes the ranges."""
        return self.calls % OFFSETS_EVERY == 0

    def needs_threshold(self, k: int) -> bool:
        """Whether this call recomputes the threshold, given its k."""
        similar = 2 * self.k <= 3 * k and 4 * k <= 5 * self.k
        return self.calls >= self.recompute_at or not similar

    def record_computed(self, k: int, selected: int) -> None:
        """Record how many entries a new threshold has selected."""
        self.k, self.selected = k, selected
        self.recompute_at = self.calls + THRESHOLD_EVERY

    def record_reused(self, selected: int) -> None:
        """Adjust a reused threshold to the data, or discard it if it is far off."""
        if not self.selected <= 2 * selected <= 4 * self.selected:
            self.recompute_at = 0
        elif 3 * selected < 2 * self.selected:
            self.threshold /= SCALE
        elif 4 * selected > 5 * self.selected:
            self.threshold *= SCALE


def load(call: Call, x: Stream) -> OkTopkState:
    """Return the state for vectors like x; the least recently used one is dropped."""
    states: dict[Shape, OkTopkState] = call.persistent.setdefault("oktopk", {})
    state = states.pop(Shape.of(x), None) or OkTopkState()
    states[Shape.of(x)] = state
    if len(states) > MAX_SHAPES:
        del states[next(iter(states))]
    return state


def cost(rank: int, workload: Workload, *, warm: bool = False) -> list[Round]:
    """Return the rounds of a rank.

    Args:
        rank: The rank.
        workload: Vectors of all ranks.
        warm: Whether the call reuses offsets and threshold; the first one computes them.
    """
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
        warm_cost=partial(cost, warm=True),
    )
)


def compare_bytes(comm: Communicator) -> None:
    """Send the largest entries of one gradient per rank, which have a part in common."""
    size, k = 1_000_000, 5_000
    common = np.random.default_rng(0).standard_cauchy(size)
    own = np.random.default_rng(1 + comm.rank).standard_cauchy(size)
    x = sparcml.TopK(k=k).select((common + own).astype(np.float32))
    for algorithm in ("auto", "oktopk"):
        comm.allreduce(x, algorithm=algorithm)  # later calls reuse what the first computes
        comm.stats.reset()
        total = comm.allreduce(x, algorithm=algorithm)
        if comm.rank == 0:
            print(f"{algorithm:7} {total.nnz:6} entries, {comm.stats.bytes:7} bytes sent")


if __name__ == "__main__":
    sparcml.launch(compare_bytes, ranks=8)
