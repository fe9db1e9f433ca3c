"""The rule by which a sparse stream turns dense.

With c bytes per index and v bytes of values per entry, nnz entries of a vector of N blocks have
nnz (c + v) bytes sparse and N v bytes dense. The two are equal at nnz = N v / (c + v).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import buffer_pool, kernels

if TYPE_CHECKING:
    from .stream import Stream

INDEX_BYTES = 4


def dense_is_smaller(nnz: int, blocks: int, entry_bytes: float) -> bool:
    """Return whether nnz entries have at least as many bytes sparse as dense."""
    return nnz * (INDEX_BYTES + entry_bytes) >= blocks * entry_bytes


def densify_if_smaller(x: Stream) -> Stream:
    """Return the stream, or its dense form if that is no larger."""
    if x.is_dense or not dense_is_smaller(x.nnz, x.blocks, x.entry_bytes):
        return x
    return densify(x)


def densify(x: Stream) -> Stream:
    """Return the dense form, with `fill` for absent entries, as a scratch stream."""
    if x.is_dense:
        return x
    values = buffer_pool.full(x.size, x.fill, x.dtype)
    kernels.scatter_assign(values, *x.pairs(), x.block)
    return x.like(None, values)
