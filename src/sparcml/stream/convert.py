"""Streams from and to what users hold: NumPy, scipy and torch.

torch and scipy are used only if the caller's object shows that they are there.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from .densify import INDEX_BYTES, densify
from .stream import Stream, Values, as_values, check_shape, read_only

if TYPE_CHECKING:
    from collections.abc import Callable

VECTOR_TYPES = ("stream", "array", "tensor", "row")


def from_array(
    array: np.ndarray[Any, Any], *, block: int, fill: float, bitwise: bool = False
) -> Stream:
    """Keep the entries that differ from fill, unless that would not be smaller.

    As numbers, -0.0 is 0.0; compared by their bits it is not.
    """
    flat = as_values(array).reshape(-1)
    check_shape(flat.size, block)
    blocks, entry = flat.size // block, block * flat.itemsize
    # The most entries for which pairs are still smaller than dense.
    limit = max(0, (blocks * entry - 1) // (INDEX_BYTES + entry))
    # Counting is one fast pass; a dense vector would be half written before it is found.
    nnz = kernels.count_nonfill(flat, fill, block, bitwise)
    if nnz > limit:
        return Stream.unchecked(flat.size, None, flat, block, fill)
    pairs = kernels.compact(flat, fill, block, bitwise, nnz)
    assert pairs is not None
    return Stream.unchecked(flat.size, *pairs, block, fill)


def from_any(x: Any, *, block: int | None, fill: float) -> Stream:
    """From a list, a torch tensor or a scipy sparse row."""
    torch = sys.modules.get("torch")
    tensor = torch is not None and isinstance(x, torch.Tensor)
    if fill != 0 and (_is_scipy(x) or (tensor and _is_sparse_tensor(x))):
        raise ValueError(
            f"from_dense: what {type(x).__name__} does not store is 0, got {fill=}"
        )
    if tensor:
        return _from_torch(x, block=block, fill=fill)
    if _is_scipy(x):
        return _from_scipy(x, block=block or 1)
    return from_array(as_values(x), block=block or 1, fill=fill)


def vector_type(x: Any) -> str:
    """What a caller's vector is, in one of VECTOR_TYPES."""
    if isinstance(x, Stream):
        return "stream"
    if isinstance(x, np.ndarray):
        return "array"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return "tensor"
    if _is_scipy(x):
        return "row"
    raise TypeError(
        f"expected a Stream, a NumPy array, a torch tensor or a scipy sparse row, "
        f"got {type(x).__name__}"
    )


def to_stream(
    x: Any, fill: float = 0.0, *, bitwise: bool = False
) -> tuple[Stream, Callable[[Stream], Any]]:
    """A caller's vector as a stream, and how to give the result back in its own kind.

    Of dense vectors, what equals `fill` is left out.
    """
    kind = vector_type(x)
    if fill != 0 and (kind == "row" or (kind == "tensor" and _is_sparse_tensor(x))):
        raise ValueError(
            "of sparse tensors and scipy rows only sum and mean can be formed: what they do "
            "not store is 0 to them; use a Stream, or make them dense"
        )
    if kind == "stream":
        return x, Stream.read_only
    if kind == "array":
        shape = x.shape
        stream = from_array(x, block=1, fill=fill, bitwise=bitwise)
        return stream, lambda y: _array(y, shape)
    if kind == "tensor":
        return _from_torch(x, block=None, fill=fill), lambda y: _tensor_like(y, x)
    return _from_scipy(x, block=1), lambda y: _row_like(y, x)


def as_vector_type(y: Stream, kind: str) -> Any:
    """A stream as one of VECTOR_TYPES, where there is nothing to take the shape from."""
    if kind == "stream":
        return y.read_only()
    if kind == "array":
        return _array(y, (y.size,))
    return y.to_torch().to_dense().reshape(-1) if kind == "tensor" else to_scipy(y)


def _array(y: Stream, shape: tuple[int, ...]) -> Values:
    dense = y.raw_values if y.is_dense else y.to_dense()
    dense = dense.reshape(shape) if y.size == math.prod(shape) else dense.reshape(-1)
    return read_only(dense)


def _row_like(y: Stream, x: Any) -> Any:
    row = to_scipy(y)
    return row.reshape(x.shape) if y.size == math.prod(x.shape) else row


def _is_sparse_tensor(x: Any) -> bool:
    return bool(x.layout is not sys.modules["torch"].strided)


def _is_scipy(x: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def _from_scipy(x: Any, *, block: int) -> Stream:
    if x.ndim == 2 and 1 not in x.shape:
        raise ValueError(f"from_dense: expected one sparse row or column, got {x.shape}")
    pairs = x.tocoo()
    positions = pairs.coords[0] if x.ndim == 1 or x.shape[0] != 1 else pairs.coords[1]
    size = int(np.prod(x.shape))
    if block == 1:
        return Stream.from_pairs(size, positions, pairs.data)
    return from_array(x.toarray().reshape(-1), block=block, fill=0.0)


def to_scipy(x: Stream) -> Any:
    """See Stream.to_scipy."""
    from scipy.sparse import csr_array

    if x.block > 1 or x.is_dense or x.fill != 0:
        return csr_array(x.to_dense()[None])
    pointers = np.array([0, x.nnz])
    return csr_array((x.values, x.indices.astype(np.int64), pointers), shape=(1, x.size))


def _from_torch(x: Any, *, block: int | None, fill: float) -> Stream:
    """Of a sparse tensor with dense dimensions, such as embedding rows, rows are blocks."""
    torch = sys.modules["torch"]
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"from_dense: tensors must be float32 or float64, got {x.dtype}; convert with "
            f".float()"
        )
    if x.layout not in (torch.strided, torch.sparse_coo):
        raise TypeError(
            f"from_dense: tensors must be dense or sparse COO, got {x.layout}; convert with "
            f".to_sparse_coo()"
        )
    if x.layout is torch.strided:
        return from_array(x.detach().cpu().numpy(), block=block or 1, fill=fill)
    pairs = x.detach().cpu().coalesce()
    rows = pairs.indices().numpy()
    sparse_shape = tuple(x.shape[: rows.shape[0]])
    width = int(np.prod(x.shape[rows.shape[0] :]))
    if block not in (None, width):
        raise ValueError(
            f"from_dense: rows of this tensor have {width} values, got {block=}"
        )
    positions = np.ravel_multi_index(tuple(rows), sparse_shape)
    size = int(np.prod(sparse_shape)) * width
    return Stream(size, positions, pairs.values().numpy().reshape(-1), block=width)


def to_torch(x: Stream) -> Any:
    """See Stream.to_torch."""
    import torch

    x = x if x.fill == 0 else densify(x)
    shape = (x.size,) if x.block == 1 else (x.blocks, x.block)
    indices = torch.from_numpy(x.indices.astype(np.int64))[None]
    values = torch.from_numpy(x.values.copy())
    return torch.sparse_coo_tensor(
        indices, values, shape, is_coalesced=True, check_invariants=False
    )


def _tensor_like(y: Stream, x: Any) -> Any:
    import torch

    same = y.size == math.prod(x.shape)
    if x.layout is torch.strided:
        dense = torch.from_numpy(y.to_dense()).to(x.device)
        return dense.reshape(x.shape) if same else dense
    if not same:
        return y.to_torch().to(x.device)
    # The same sparse and dense dimensions as x had.
    if x.sparse_dim() == 1:
        rows = y.indices.astype(np.int64)[None]
    else:
        found = np.unravel_index(y.indices, tuple(x.shape[: x.sparse_dim()]))
        rows = np.stack(found).astype(np.int64)
    values = torch.from_numpy(y.raw_values if y.is_scratch else y.values.copy())
    return torch.sparse_coo_tensor(
        torch.from_numpy(rows),
        values.reshape(-1, *x.shape[x.sparse_dim() :]),
        x.shape,
        is_coalesced=True,
        check_invariants=False,
    ).to(x.device)
