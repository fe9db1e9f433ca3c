"""Many streams summed over all ranks in one call, and means made of the sums."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..collectives import ALLREDUCES
from ..stream import Stream, join, split
from ..stream.reduction import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream.stream import Values

SHORT = 1 << 18  # bytes that take about as long as a message without any

Pair = tuple[Stream, Stream]  # the sum over all ranks, and this rank's part of it


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
    """The sum of each stream, and this rank's part of it as the others saw it.

    Streams of the same dtype and block travel together. Where nothing is lost on the way,
    the part is the very stream that was given.

    Args:
        comm: The ranks.
        streams: This rank's.
        quantize: How values are coded on the way.
        algorithm: As for `allreduce`.
        fixed_nnz: Whether streams always have as many entries: then what `auto` chooses
            once holds for good.
        feedback: Whether the parts are wanted where something may be lost.
        seed: Decides what is random in the quantizer.
    """
    found: dict[int, Pair] = {}
    groups: dict[Any, list[int]] = {}
    for i, stream in enumerate(streams):
        groups.setdefault((stream.block, stream.dtype.char), []).append(i)
    for places in groups.values():
        mine = [streams[i] for i in places]
        call = partial(_allreduce_fused, comm, mine, quantize, algorithm, seed)
        pairs = call(fixed_nnz=fixed_nnz, feedback=feedback)
        found.update(zip(places, pairs, strict=True))
    return [found[i] for i in range(len(streams))]


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
    edges = [0, *accumulate(s.blocks for s in streams)]
    whole = streams[0] if len(streams) == 1 else join(streams, edges)
    if fixed_nnz and algorithm == "auto" and comm.size > 1:
        algorithm = _settled(comm, whole, quantize)
    chooses = algorithm != "auto" and ALLREDUCES[algorithm].lossy
    lossy = comm.size > 1 and (quantize is not None or chooses)
    sum_up = partial(
        comm.allreduce, whole, algorithm=algorithm, quantize=quantize, seed=seed
    )
    if not (feedback and lossy):
        return list(zip(_cut(sum_up(), edges), streams, strict=True))
    total, seen = sum_up(return_seen=True)
    return list(zip(_cut(total, edges), _cut(seen, edges), strict=True))


def _cut(x: Stream, edges: list[int]) -> list[Stream]:
    return [x] if len(edges) == 2 else split(x, edges)


def _settled(comm: Communicator, x: Stream, quantize: Quantizer | None) -> str:
    """What auto takes for vectors like x, asked once.

    Before an engine's own sum ranks agree each time, and gloo's passes through threads that
    take longer than short messages do.
    """
    kind = ("settled", x.size, x.nnz, x.block, x.dtype.char, quantize)
    if kind not in comm.cache.algorithms:
        choice = comm.explain(x, quantize=quantize).choice
        short = choice == "native" and comm.engine == "torch" and x.nbytes <= SHORT
        comm.cache.algorithms[kind] = "recursive_double" if short else choice
    return str(comm.cache.algorithms[kind])


def dense_sums(comm: Communicator, arrays: Sequence[Values]) -> list[Values]:
    """The sums of dense arrays, packed together, as views of one result."""
    streams = [Stream.unchecked(a.size, None, a) for a in arrays]
    pairs = allreduce_streams(comm, streams)
    return [total.raw_values if total.is_dense else total.to_dense() for total, _ in pairs]


def mean(total: Stream, ranks: int, out: Values | None = None) -> Values:
    """A sum over ranks, divided and dense: in `out`, or a new array."""
    if total.raw_indices is None:
        values = buffer_pool.empty(total.size, total.dtype) if out is None else out
        np.divide(total.raw_values, total.dtype.type(ranks), out=values)
        return values
    values = buffer_pool.empty(len(total.raw_values), total.dtype)
    np.divide(total.raw_values, total.dtype.type(ranks), out=values)
    dense = buffer_pool.empty(total.size, total.dtype) if out is None else out
    dense.fill(0)
    kernels.scatter_assign(dense, total.raw_indices, values, total.block)
    return dense


def put_back(rest: Values, sent: Stream, seen: Stream) -> None:
    """Add to the rest what was sent but not seen."""
    if seen is sent:
        return
    missing = difference(sent, seen)
    if missing.raw_indices is None:
        np.add(rest, missing.raw_values, out=rest)
    else:
        kernels.scatter("sum", rest, missing.raw_indices, missing.raw_values, missing.block)


def all_but_seen(sent: Stream, seen: Stream) -> Values:
    """What is owed after everything was sent: what was not seen, in the memory of the sent."""
    rest = sent.raw_values
    if seen is sent:
        rest.fill(0)
    elif seen.raw_indices is None:
        np.subtract(rest, seen.raw_values, out=rest)
    else:
        kernels.scatter("sum", rest, seen.raw_indices, -seen.raw_values, seen.block)
    return rest


def squares_of(values: Values) -> float:
    """The sum of squares, in double: of float32 it cannot overflow."""
    return (
        float(kernels.block_squared_norms(values, values.size)[0]) if values.size else 0.0
    )
