"""Fused allreduce of several streams, and means of the results."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..collectives import ALLREDUCES
from ..stream import Stream, join, split
from ..stream.ranges import restrict_to, take

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..sparsify import TopK
    from ..stream.arrays import Values

Pair = tuple[Stream, Stream]  # the result of an allreduce, and this rank's `seen`


def allreduce_streams(
    comm: Communicator,
    streams: Sequence[Stream],
    *,
    quantize: Quantizer | None = None,
    algorithm: str = "auto",
    fixed_nnz: bool = False,
    feedback: bool = True,
    seed: int | None = None,
) -> list[Pair]:
    """Sum each stream over all ranks. Collective.

    Streams of equal dtype and block are fused into one allreduce.

    Args:
        comm: The communicator.
        streams: The streams of this rank.
        quantize: Quantizer of the values in flight.
        algorithm: Allreduce algorithm, as for `comm.allreduce`.
        fixed_nnz: Whether the streams have the same nnz in every step: the choice of "auto"
            is then made once.
        feedback: Whether `seen` is needed if the allreduce is lossy.
        seed: Random seed of the quantizer.

    Returns:
        For each stream the result and `seen`. If nothing is lost, `seen` is the very stream
        that was passed.
    """
    pairs: dict[int, Pair] = {}
    groups: dict[Any, list[int]] = {}
    for i, stream in enumerate(streams):
        groups.setdefault((stream.block, stream.dtype.char), []).append(i)
    for members in groups.values():
        group = [streams[i] for i in members]
        reduced = _allreduce_fused(
            comm, group, quantize, algorithm, seed, fixed_nnz=fixed_nnz, feedback=feedback
        )
        pairs.update(zip(members, reduced, strict=True))
    return [pairs[i] for i in range(len(streams))]


def _allreduce_fused(
    comm: Communicator,
    streams: Sequence[Stream],
    quantize: Quantizer | None,
    algorithm: str,
    seed: int | None,
    *,
    fixed_nnz: bool,
    feedback: bool,
) -> list[Pair]:
    """Sum streams of equal dtype and block in one allreduce."""
    if quantize is not None:
        quantize = quantize.propagating()  # methods have checked, see `Method.nonfinite`
    offsets = [0, *accumulate(s.blocks for s in streams)]
    fused = streams[0] if len(streams) == 1 else join(streams, offsets)
    if fixed_nnz and algorithm == "auto" and comm.size > 1:
        algorithm = comm._pin_algorithm(fused, quantize)
    drops_entries = algorithm != "auto" and ALLREDUCES[algorithm].lossy
    lossy = comm.size > 1 and (quantize is not None or drops_entries)
    allreduce = partial(
        comm.allreduce, fused, algorithm=algorithm, quantize=quantize, seed=seed
    )
    if not (feedback and lossy):
        return list(zip(_unfuse(allreduce(), offsets), streams, strict=True))
    result, seen = allreduce(return_seen=True)
    return list(zip(_unfuse(result, offsets), _unfuse(seen, offsets), strict=True))


def _unfuse(x: Stream, offsets: list[int]) -> list[Stream]:
    return [x] if len(offsets) == 2 else split(x, offsets)


def allreduce_values(
    streams: Sequence[Stream], allreduce: Callable[[Sequence[Stream]], list[Pair]]
) -> list[Pair]:
    """Sum streams that have the same indices on all ranks: only values are sent."""

    def with_indices(x: Stream, like: Stream) -> Stream:
        values = x.raw_values if x.is_dense else x.to_dense()
        return Stream.unchecked(like.size, like.raw_indices, values, like.block)

    values = [Stream.unchecked(len(s.raw_values), None, s.raw_values) for s in streams]
    return [
        (with_indices(result, s), with_indices(seen, s))
        for s, (result, seen) in zip(streams, allreduce(values), strict=True)
    ]


def keep_largest(topk: TopK, total: Stream, seen: Stream) -> Pair:
    """Return the largest entries (blocks: by norm) of a sum, and this rank's part of them.

    The gTop-k paper drops entries inside a tree and may miss some of the largest. Here the sum
    is complete, and every rank drops the same entries.

    Reference: Shi et al.: A Distributed Synchronous SGD Algorithm with Global Top-k
    Sparsification for Low Bandwidth Networks, ICDCS 2019.
    """
    magnitudes, k = total.raw_values, topk.count(total.blocks)
    if total.nnz <= k:
        return total, seen
    if total.block > 1:
        magnitudes = kernels.block_squared_norms(magnitudes, total.block)
    positions, _ = kernels.top_k(magnitudes, k)
    largest = take(total, positions.astype(np.intp))
    return largest, restrict_to(seen, largest.indices)


def mean_stream(total: Stream, ranks: int, out: Values | None = None) -> Stream:
    """Return a sum over ranks divided by their number; sparse if the sum is."""
    values = buffer_pool.empty(len(total.raw_values), total.dtype) if out is None else out
    np.divide(total.raw_values, total.dtype.type(ranks), out=values)
    return Stream.unchecked(
        total.size, total.raw_indices, values, total.block, scratch=True
    )


def mean_dense(total: Stream, ranks: int, out: Values | None = None) -> Values:
    """Return a sum over ranks divided by their number as a dense array, `out` if given."""
    if total.raw_indices is None:
        return mean_stream(total, ranks, out).raw_values
    mean = mean_stream(total, ranks)
    dense = buffer_pool.empty(total.size, total.dtype) if out is None else out
    dense.fill(0)
    kernels.scatter_assign(dense, total.raw_indices, mean.raw_values, total.block)
    return dense


def mean_arrays(comm: Communicator, arrays: Sequence[Values]) -> list[Values]:
    """Average arrays over all ranks in one allreduce. Collective."""
    streams = [Stream.unchecked(a.size, None, a.reshape(-1)) for a in arrays]
    pairs = allreduce_streams(comm, streams)
    return [
        mean_dense(total, comm.size).reshape(a.shape)
        for (total, _), a in zip(pairs, arrays, strict=True)
    ]
