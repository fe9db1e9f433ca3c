"""Cutting a stream into ranges, and joining ranges back: concatenation, no addition."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from .densify import dense_is_smaller, densify_if_smaller
from .stream import Indices, Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def range_offsets(blocks: int, parts: int) -> list[int]:
    """Where `parts` ranges of nearly equal size begin, and the end: parts + 1 numbers."""
    return [blocks * j // parts for j in range(parts + 1)]


def split(x: Stream, edges: Sequence[int]) -> list[Stream]:
    """The ranges between the edges, each counting its indices from its own start."""
    block = x.block
    if x.raw_indices is None:
        return [
            Stream.unchecked(
                (b - a) * block,
                None,
                x.raw_values[a * block : b * block],
                block,
                x.fill,
            )
            for a, b in itertools.pairwise(edges)
        ]
    cuts = np.searchsorted(x.raw_indices, np.asarray(edges, np.uint32))
    parts = []
    for j, (a, b) in enumerate(itertools.pairwise(edges)):
        inside = slice(cuts[j], cuts[j + 1])
        indices = x.raw_indices[inside]
        if a:
            shifted = buffer_pool.empty(len(indices), np.uint32)
            indices = np.subtract(indices, np.uint32(a), out=shifted)
        values = x.raw_values[cuts[j] * block : cuts[j + 1] * block]
        part = Stream.unchecked((b - a) * block, indices, values, block, x.fill)
        parts.append(densify_if_smaller(part))
    return parts


def take(x: Stream, places: NDArray[np.intp]) -> Stream:
    """Some of the entries that x stores, by their places among them, ascending."""
    indices = places.astype(np.uint32) if x.is_dense else x.indices[places]
    values = x.raw_values.reshape(-1, x.block)[places].reshape(-1)
    return densify_if_smaller(
        Stream.unchecked(x.size, indices, values, x.block, x.fill, scratch=True)
    )


def without_fill(x: Stream, nnz: int | None = None) -> Stream:
    """A dense stream as its pairs (nnz, if known) that are not bit for bit the fill."""
    if x.raw_indices is not None:
        return x
    pairs = kernels.compact(x.raw_values, x.fill, x.block, bitwise=True, limit=nnz)
    assert pairs is not None
    return Stream.unchecked(x.size, *pairs, x.block, x.fill)


def restrict_to(x: Stream, indices: Indices) -> Stream:
    """What x has at these indices, which ascend."""
    if x.raw_indices is None:
        return take(x, indices.astype(np.intp))
    at = np.searchsorted(indices, x.raw_indices)
    at[at == len(indices)] = 0
    found = indices[at] == x.raw_indices if len(indices) else np.zeros(x.nnz, bool)
    return take(x, np.flatnonzero(found))


def join(parts: Sequence[Stream], edges: Sequence[int]) -> Stream:
    """The opposite of split. Dense as soon as that is no larger than pairs."""
    first = parts[0]
    blocks = edges[-1]
    nnz = sum(p.nnz for p in parts)
    if dense_is_smaller(nnz, blocks, first.entry_bytes):
        return join_dense(parts, edges)
    indices = buffer_pool.empty(nnz, np.uint32)
    values = buffer_pool.empty(nnz * first.block, first.dtype)
    at = 0
    for part, start in zip(parts, edges, strict=False):
        end = at + part.nnz
        np.add(part.indices, np.uint32(start), out=indices[at:end])
        values[at * first.block : end * first.block] = part.raw_values
        at = end
    size = blocks * first.block
    return Stream.unchecked(size, indices, values, first.block, first.fill, scratch=True)


def join_dense(parts: Sequence[Stream], edges: Sequence[int]) -> Stream:
    """As `join`, but always dense."""
    whole = empty(parts[0], edges[-1])
    for part, start in zip(parts, edges[:-1], strict=True):
        write_range(whole, start, part)
    return whole


def empty(x: Stream, blocks: int) -> Stream:
    """A dense stream like x, with so many blocks, whose values are still to be `put`."""
    values = buffer_pool.empty(blocks * x.block, x.dtype)
    return Stream.unchecked(len(values), None, values, x.block, x.fill, scratch=True)


def write_range(whole: Stream, start: int, part: Stream) -> None:
    """Write a part into the range of a dense stream that begins at block `start`."""
    window = whole.raw_values[start * part.block :][: part.size]
    if part.raw_indices is None:
        window[:] = part.raw_values
    else:
        window[:] = part.fill
        kernels.scatter_assign(window, part.raw_indices, part.raw_values, part.block)
