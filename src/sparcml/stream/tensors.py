"""Torch tensors to arrays and back. Torch is used only if it is imported already."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from .arrays import (
    StreamArrays,
    as_indices,
    as_values,
    check_ascending,
    check_shape,
    from_array,
)
from .densify import densify

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .stream import Stream


def is_tensor(x: Any) -> bool:
    """Return whether x is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_sparse_tensor(x: Any) -> bool:
    """Return whether x is a torch tensor that is not dense."""
    return is_tensor(x) and bool(x.layout is not sys.modules["torch"].strided)


def check_tensor(function: str, tensor: Any) -> None:
    """Check that a tensor is dense and of a floating point type that can be read.

    Raises:
        TypeError: If it is not.
    """
    torch = sys.modules["torch"]
    dtypes = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    if tensor.layout is not torch.strided or tensor.dtype not in dtypes:
        raise TypeError(
            f"{function}: tensors must be dense and of float32, float64, float16 or bfloat16, "
            f"got {tensor.dtype}, {tensor.layout}"
        )


def on_host(tensor: Any) -> NDArray[Any]:
    """Return the values as an array: a view if they are in main memory; bfloat16 as float32."""
    torch = sys.modules["torch"]
    local = tensor.detach().cpu()
    if local.dtype == torch.bfloat16:  # NumPy has no such type
        bits = local.contiguous().reshape(-1).view(torch.int16).numpy().view(np.uint16)
        return kernels.from_half(bits, True).reshape(tuple(local.shape))
    array: NDArray[Any] = local.numpy()
    return array


def flat_array(tensor: Any) -> NDArray[Any]:
    """Return the values of a dense tensor as a flat float32 or float64 array."""
    wide = tensor.detach() if tensor.dtype.itemsize > 2 else tensor.detach().float()
    array: NDArray[Any] = wide.cpu().contiguous().numpy().reshape(-1)
    return array


def to_tensor(array: NDArray[Any], like: Any) -> Any:
    """Return an array as a tensor with the shape, device and dtype of `like`."""
    import torch

    return torch.from_numpy(array).reshape(like.shape).to(like.device, like.dtype)


def from_tensor(
    x: Any, *, block: int | None = None, fill: float = 0.0, dense: bool = False
) -> StreamArrays:
    """Return the entries of a tensor; all values of a dense one if `dense` is set.

    Rows of a sparse tensor with dense dimensions, such as the gradient of an embedding, are
    blocks.
    """
    torch = sys.modules["torch"]
    if x.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
        remedy = ".float()" if x.is_floating_point() else ".long()"
        raise TypeError(
            f"from_dense: tensors must be float32, float64, int32 or int64, got {x.dtype}; "
            f"convert with {remedy}"
        )
    if x.layout not in (torch.strided, torch.sparse_coo):
        raise TypeError(
            f"from_dense: tensors must be dense or sparse COO, got {x.layout}; convert with "
            f".to_sparse_coo()"
        )
    if x.layout is torch.strided:
        return from_array(on_host(x), block=block or 1, fill=fill, dense=dense)
    pairs = x.detach().cpu()
    rows = pairs._indices().numpy()
    sparse_shape = tuple(x.shape[: rows.shape[0]])
    width = int(np.prod(x.shape[rows.shape[0] :]))
    if block not in (None, width):
        raise ValueError(
            f"from_dense: block must be {width}, the row length of this tensor, got {block}"
        )
    blocks = int(np.prod(sparse_shape))
    check_shape(blocks * width, width)
    flat = rows[0] if len(rows) == 1 else np.ravel_multi_index(tuple(rows), sparse_shape)
    values = as_values(pairs._values().numpy()).reshape(-1)
    if x.is_coalesced():
        indices = as_indices(flat, blocks)
    else:  # many times faster than `coalesce` of torch
        indices, values = kernels.coalesce(np.ascontiguousarray(flat), values, width)
    check_ascending(indices, blocks)
    return StreamArrays(blocks * width, indices, values, width)


def to_torch(x: Stream) -> Any:
    """Return a sparse COO tensor; blocks are rows of shape (blocks, block)."""
    import torch

    x = x if x.fill == 0 else densify(x)
    shape = (x.size,) if x.block == 1 else (x.blocks, x.block)
    indices = torch.from_numpy(x.indices.astype(np.int64))[None]
    values = torch.from_numpy(x.values.copy())
    return torch.sparse_coo_tensor(
        indices, values, shape, is_coalesced=True, check_invariants=False
    )


def to_torch_like(y: Stream, x: Any) -> Any:
    """Return y as a tensor with the layout, shape and device of x."""
    import torch

    same = y.size == math.prod(x.shape)
    if x.layout is torch.strided:
        dense = torch.from_numpy(y.to_dense()).to(x.device)
        return dense.reshape(x.shape) if same else dense
    if not same:
        return to_torch(y).to(x.device)
    if x.sparse_dim() == 1:
        rows = y.indices.astype(np.int64)[None]
    else:
        coordinates = np.unravel_index(y.indices, tuple(x.shape[: x.sparse_dim()]))
        rows = np.stack(coordinates).astype(np.int64)
    values = torch.from_numpy(y.raw_values if y.is_scratch else y.values.copy())
    return torch.sparse_coo_tensor(
        torch.from_numpy(rows),
        values.reshape(-1, *x.shape[x.sparse_dim() :]),
        x.shape,
        is_coalesced=True,
        check_invariants=False,
    ).to(x.device)
