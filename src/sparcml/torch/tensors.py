"""Tensors as flat arrays and back, without copies where there need be none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate.error_feedback import squared_norm

if TYPE_CHECKING:
    from torch import Tensor

HOSTED = ("cpu", "cuda")  # devices whose tensors are read here, or copied to the host
FLOATS = (torch.float32, torch.float64)


def is_sparse(tensor: Tensor) -> bool:
    """Whether only some rows are stored, as of `nn.Embedding(sparse=True)`."""
    return bool(tensor.layout is torch.sparse_coo)


def check_device(name: str, tensor: Tensor) -> None:
    """Raise unless its values can be sent."""
    kind = tensor.device.type
    if kind not in HOSTED:
        raise ValueError(
            f"parameter {name!r} is on device {kind!r}, whose tensors cannot be sent; move "
            f"the model to one of {', '.join(HOSTED)} before wrapping it"
        )
    if not tensor.dtype.is_floating_point:
        raise TypeError(
            f"parameter {name!r} is of {tensor.dtype}; gradients must be of floats: leave it "
            f"out of training with requires_grad_(False)"
        )


def values_of(tensor: Tensor) -> Tensor:
    """What is stored, dense: all values, or those of the rows that are there."""
    return tensor._values() if is_sparse(tensor) else tensor


def squares(tensor: Tensor) -> float:
    """The sum of squares, in double."""
    values = values_of(tensor).detach()
    if values.device.type != "cpu":
        return float(torch.linalg.vector_norm(values, dtype=torch.float64)) ** 2
    if values.dtype not in FLOATS:
        values = values.float()
    return squared_norm(values.cpu().contiguous().numpy().reshape(-1))


def is_finite(tensor: Tensor) -> bool:
    """Whether there is neither NaN nor infinity."""
    if math.isfinite(squares(tensor)):
        return True
    return bool(values_of(tensor).isfinite().all())


def scaled(tensor: Tensor, factor: float) -> Tensor:
    """A multiple, in at least 32 bits; itself if there is nothing to do."""
    wide = tensor if tensor.dtype in FLOATS else tensor.float()
    return wide if factor == 1 else wide * factor


def zero_gradient(gradient: Tensor) -> Tensor:
    """The same kind of gradient, of zeros or without rows."""
    return empty_rows(gradient) if is_sparse(gradient) else torch.zeros_like(gradient)


def empty_rows(parameter: Tensor) -> Tensor:
    """The gradient of a table of which no row was used."""
    return torch.sparse_coo_tensor(
        torch.empty((1, 0), dtype=torch.int64, device=parameter.device),
        torch.empty(
            (0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device
        ),
        parameter.shape,
        is_coalesced=True,
        check_invariants=False,
    )


def write(target: Tensor, source: Tensor) -> None:
    """Copy; between arrays of one dtype without torch's threads, which have other work."""
    if target.data_ptr() == source.data_ptr():
        return
    if target.device.type == "cpu" and target.dtype is source.dtype and _has_array(target):
        np.copyto(target.detach().numpy(), source.numpy())
    else:
        target.copy_(source)


def _has_array(tensor: Tensor) -> Any:
    return tensor.dtype in (*FLOATS, torch.float16)
