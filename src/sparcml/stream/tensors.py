"""Dense torch tensors as arrays. torch is used only if it is loaded: else there are none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_tensor(x: Any) -> bool:
    """Whether it is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def check_tensor(who: str, tensor: Any) -> None:
    """TypeError unless it is dense and of floats that can be read."""
    torch = sys.modules["torch"]
    known = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    if tensor.layout is not torch.strided or tensor.dtype not in known:
        raise TypeError(
            f"{who}: tensors must be dense and of float32, float64, float16 or bfloat16, "
            f"got {tensor.dtype}, {tensor.layout}"
        )


def on_host(tensor: Any) -> NDArray[Any]:
    """The same values; a view if it is in main memory and not of bfloat16."""
    torch = sys.modules["torch"]
    near = tensor.detach().cpu()
    if near.dtype == torch.bfloat16:  # which NumPy does not know: float32
        bits = near.contiguous().reshape(-1).view(torch.int16).numpy().view(np.uint16)
        return kernels.from_half(bits, True).reshape(tuple(near.shape))
    array: NDArray[Any] = near.numpy()
    return array
