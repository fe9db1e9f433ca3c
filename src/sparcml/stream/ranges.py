"""Ranges of a stream: split, join, and selections of its entries."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from .densify import dense_is_smaller, densify_if_smaller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .arrays import Indices
    from .stream import Stream


def range_offsets(blocks: int, ranges: int) -> list[int]:
    """Return the starts of `ranges` ranges of nearly equal size, and the end."""
    return [blocks * j // ranges for j in range(ranges + 1)]


def split(x: Stream, offsets: Sequence[int]) -> list[Stream]:
    """Return the ranges between the offsets; indices count from the start of each range."""
    block = x.block
    bounds = list(itertools.pairwise(offsets))
    if x.raw_indices is None:
        return [
            x.like(
                None,
                x.raw_values[start * block : end * block],
                size=(end - start) * block,
                scratch=False,
            )
            for start, end in bounds
        ]
    cuts = np.searchsorted(x.raw_indices, np.asarray(offsets, np.uint32))
    ranges = []
    for j, (start, end) in enumerate(bounds):
        indices = x.raw_indices[cuts[j] : cuts[j + 1]]
        if start:
            shifted = buffer_pool.empty(len(indices), np.uint32)
            indices = np.subtract(indices, np.uint32(start), out=shifted)
        values = x.raw_values[cuts[j] * block : cuts[j + 1] * block]
        part = x.like(indices, values, size=(end - start) * block, scratch=False)
        ranges.append(densify_if_smaller(part))
    return ranges


def join(ranges: Sequence[Stream], offsets: Sequence[int]) -> Stream:
    """Return the stream of these ranges, the inverse of `split`; dense if no larger."""
    first = ranges[0]
    blocks = offsets[-1]
    nnz = sum([r.nnz for r in ranges])
    if dense_is_smaller(nnz, blocks, first.entry_bytes):
        return join_dense(ranges, offsets)
    indices = buffer_pool.empty(nnz, np.uint32)
    values = buffer_pool.empty(nnz * first.block, first.raw_values.dtype)
    at = 0
    for part, start in zip(ranges, offsets, strict=False):
        end = at + part.nnz
        np.add(part.indices, np.uint32(start), out=indices[at:end])
        values[at * first.block : end * first.block] = part.raw_values
        at = end
    return first.like(indices, values, size=blocks * first.block)


def join_dense(ranges: Sequence[Stream], offsets: Sequence[int]) -> Stream:
    """Return the stream of these ranges, always dense."""
    joined = empty(ranges[0], offsets[-1])
    for part, start in zip(ranges, offsets[:-1], strict=True):
        write_range(joined, start, part)
    return joined


def empty(x: Stream, blocks: int) -> Stream:
    """Return a dense stream like x with uninitialized values, for `write_range`."""
    values = buffer_pool.empty(blocks * x.block, x.dtype)
    return x.like(None, values, size=len(values))


def write_range(out: Stream, start: int, x: Stream) -> None:
    """Write x to the range of a dense stream that begins at block `start`."""
    window = out.raw_values[start * x.block :][: x.size]
    if x.raw_indices is None:
        window[:] = x.raw_values
    else:
        window[:] = x.fill
        kernels.scatter_assign(window, x.raw_indices, x.raw_values, x.block)


def take(x: Stream, positions: NDArray[np.intp]) -> Stream:
    """Return the entries at these ascending positions among the stored entries."""
    indices = positions.astype(np.uint32) if x.is_dense else x.indices[positions]
    values = x.raw_values.reshape(-1, x.block)[positions].reshape(-1)
    return densify_if_smaller(x.like(indices, values))


def restrict_to(x: Stream, indices: Indices) -> Stream:
    """Return the entries of x at these ascending indices."""
    if x.raw_indices is None:
        return take(x, indices.astype(np.intp))
    at = np.searchsorted(indices, x.raw_indices)
    at[at == len(indices)] = 0
    inside = indices[at] == x.raw_indices if len(indices) else np.zeros(x.nnz, bool)
    return take(x, np.flatnonzero(inside))


def without_fill(x: Stream, nnz: int | None = None) -> Stream:
    """Return a dense stream as pairs (nnz, if known) that are not bitwise equal to fill."""
    if x.raw_indices is not None:
        return x
    pairs = kernels.compact(x.raw_values, x.fill, x.block, bitwise=True, limit=nnz)
    assert pairs is not None
    return x.like(*pairs, scratch=False)
