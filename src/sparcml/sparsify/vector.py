"""What a selection is made from: a vector in memory, or a tensor on a device.

Both answer the same questions, so each sparsifier is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import kernels
from ..stream.stream import as_values
from ..stream.tensors import check_tensor, is_tensor, on_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.uint32]
    Values = NDArray[Any]
    Entries = tuple[Indices, Values]


class Sampled(Protocol):
    """A vector of which a sample can be had."""

    @property
    def size(self) -> int:
        """Number of values."""

    def sample(self, stride: int) -> Values:
        """Every stride-th value."""


class Source(Sampled, Protocol):
    """A vector that can be asked for its largest entries; see kernels for what is meant."""

    def top_k(self, k: int) -> Entries:
        """The k largest."""

    def bucket_top_k(self, k: int, bucket: int) -> Entries:
        """The k largest of every bucket."""

    def at_least(self, threshold: float) -> Entries:
        """All with |v| >= threshold."""

    def gather(self, indices: Indices, block: int = 1) -> Values:
        """The blocks of values at these indices, as one array."""

    def block_squares(self, block: int) -> NDArray[np.float64]:
        """Sums of squares of every `block` values."""


@dataclass(frozen=True)
class Sum:
    """Of two vectors, before it is computed."""

    a: Values
    b: Values

    @property
    def size(self) -> int:
        """Number of values."""
        return self.a.size

    def sample(self, stride: int) -> Values:
        """Every stride-th value."""
        with np.errstate(all="ignore"):
            total: Values = self.a[::stride] + self.b[::stride]
        return total


class Host:
    """A contiguous float32 or float64 array."""

    def __init__(self, values: Values) -> None:
        self.values = values

    @property
    def size(self) -> int:
        """Number of values."""
        return self.values.size

    def top_k(self, k: int) -> Entries:
        """The k largest."""
        return kernels.top_k(self.values, k)

    def bucket_top_k(self, k: int, bucket: int) -> Entries:
        """The k largest of every bucket."""
        return kernels.bucket_top_k(self.values, k, bucket)

    def at_least(self, threshold: float) -> Entries:
        """All with |v| >= threshold."""
        return kernels.at_least(self.values, threshold)

    def sample(self, stride: int) -> Values:
        """Every stride-th value."""
        return np.ascontiguousarray(self.values[::stride])

    def gather(self, indices: Indices, block: int = 1) -> Values:
        """The blocks of values at these indices, as one array."""
        return self.values.reshape(-1, block)[indices].reshape(-1)

    def block_squares(self, block: int) -> NDArray[np.float64]:
        """Sums of squares of every `block` values."""
        return kernels.block_squared_norms(self.values, block)


def opened(vector: Any) -> Source:
    """A caller's vector, flat; float16 and bfloat16 become float32."""
    if isinstance(vector, np.ndarray):
        return Host(_flat(vector))
    if not is_tensor(vector):
        raise TypeError(
            f"select: expected a NumPy array or a torch tensor, got "
            f"{type(vector).__name__}; use np.asarray"
        )
    return _opened_tensor(vector)


def _flat(array: NDArray[Any]) -> Values:
    if array.dtype.newbyteorder("=") == np.float16:
        bits = np.ascontiguousarray(array, np.float16).reshape(-1).view(np.uint16)
        return kernels.from_half(bits, False)
    return as_values(array).reshape(-1)


def _opened_tensor(tensor: Any) -> Source:
    """On the processor: a view of its memory."""
    from .device import Device

    check_tensor("select", tensor)
    flat = tensor.detach().contiguous().reshape(-1)
    if tensor.device.type == "cpu":
        return Host(_flat(on_host(flat)))
    return Device(flat if tensor.dtype.itemsize > 2 else flat.float())
