"""Compressed vectors between neighbours: the sender knows what its receivers decode."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .. import buffer_pool, kernels
from ..quantize import Quantizer
from ..quantize.code import mix_seed
from ..sparsify import Sparsifier
from ..sparsify.vector import Host
from ..stream import Stream, join
from .step import as_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..stream.arrays import Values
    from .state import State
    from .step import Step

Compressor: TypeAlias = Sparsifier | Quantizer | None  # None sends vectors as they are

MEMORY = "memory"  # entry of the state: what the sparsifier keeps, one row per parameter


def exchange_compressed(
    call: Step, compress: Compressor, x: Values, seed: int, state: State, new: State
) -> tuple[Stream, dict[int, Stream]]:
    """Send a compressed vector to the receivers. Collective.

    Args:
        call: The step.
        compress: A sparsifier selects entries of each parameter separately. A quantizer encodes
            all values.
        x: The vector of this rank.
        seed: Random seed; it is combined with the step, and with the rank.
        state: State of the method.
        new: Receives the new state of the sparsifier.

    Returns:
        What the receivers decode, and what the neighbours sent.
    """
    if isinstance(compress, Sparsifier):
        stream, quantize = select(call, compress, x, seed, state, new), None
    else:
        stream, quantize = as_stream(x), compress
    received, seen = call.exchange(
        stream, quantize=quantize, return_seen=True, seed=mix_seed(seed, call.number)
    )
    return seen, received


def select(
    call: Step, sparsifier: Sparsifier, x: Values, seed: int, state: State, new: State
) -> Stream:
    """Return the selection of each parameter, joined in one stream."""
    seed = mix_seed(seed, call.number, call.rank)
    offsets = call.layout.offsets
    rows = len(offsets) - 1
    initial = sparsifier.initial_state()
    memory: NDArray[np.float64] = np.array(state.get(MEMORY, np.tile(initial, (rows, 1))))
    with call.comm.stats.phase("select", nnz=x.size):
        selected = [
            sparsifier.select_from(
                Host(x[offsets[row] : offsets[row + 1]]), mix_seed(seed, row), memory[row]
            )
            for row in range(rows)
        ]
    if initial.size:
        new[MEMORY] = memory
    if rows == 1:
        return selected[0]
    return join([_without_blocks(stream) for stream in selected], offsets)


def _without_blocks(stream: Stream) -> Stream:
    """Return a stream of single values: parameters need not begin at a multiple of a block."""
    if stream.block == 1 or stream.raw_indices is None:
        return Stream.unchecked(stream.size, stream.raw_indices, stream.raw_values)
    starts = stream.raw_indices.astype(np.uint32) * np.uint32(stream.block)
    positions = np.add.outer(starts, np.arange(stream.block, dtype=np.uint32)).reshape(-1)
    return Stream.unchecked(stream.size, positions, stream.raw_values)


def add_to(x: Values, stream: Stream, *, overwrite: bool = False) -> Values:
    """Return x plus a stream; all ranks compute the same bits.

    The result is a new vector, or x itself if `overwrite` is set: then the cost of a sparse
    stream is that of its entries.
    """
    overwrite = overwrite and x.flags.writeable
    result: Values = x if overwrite else buffer_pool.empty(x.size, x.dtype)
    if stream.raw_indices is None:
        kernels.combine_dense("sum", x, stream.raw_values, result)
    else:
        if not overwrite:
            result[:] = x
        kernels.scatter("sum", result, stream.raw_indices, stream.raw_values, stream.block)
    return result


def dense(stream: Stream) -> Values:
    """Return the values of a stream as a vector."""
    values: Values = stream.to_dense()
    return values
