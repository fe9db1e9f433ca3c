"""When a vector stops being worth its indices.

With c bytes an index and v bytes an entry's values, nnz entries of a vector of N blocks
cost nnz (c + v) bytes sparse and N v dense: they break even at delta = N v / (c + v).
"""

from __future__ import annotations

from .. import buffer_pool, kernels
from .stream import Stream

INDEX_BYTES = 4


def dense_is_smaller(nnz: int, blocks: int, entry_bytes: float) -> bool:
    """Whether nnz entries take at least as many bytes sparse as dense."""
    return nnz * (INDEX_BYTES + entry_bytes) >= blocks * entry_bytes


def densify_if_smaller(x: Stream) -> Stream:
    """The stream itself, or its dense form once that is no larger."""
    if x.is_dense or not dense_is_smaller(x.nnz, x.blocks, x.entry_bytes):
        return x
    return densify(x)


def densify(x: Stream) -> Stream:
    """The dense form, with the fill where nothing is stored; ours to overwrite."""
    if x.is_dense:
        return x
    values = buffer_pool.full(x.size, x.fill, x.dtype)
    kernels.scatter_assign(values, *x.pairs(), x.block)
    return Stream.unchecked(x.size, None, values, x.block, x.fill, scratch=True)
