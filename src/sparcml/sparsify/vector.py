"""Sources of a selection: an array in memory, or a tensor on a device.

Both have the same methods, so each sparsifier is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import kernels
from ..stream.arrays import as_values
from ..stream.tensors import check_tensor, is_tensor, on_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.uint32]
    Values = NDArray[Any]
    Entries = tuple[Indices, Values]


class Sampled(Protocol):
    """A vector that can be sampled."""

    @property
    def size(self) -> int:
        """Number of values."""

    def sample(self, stride: int) -> Values:
        """Return every stride-th value."""


class Source(Sampled, Protocol):
    """A vector with the operations of the selection kernels."""

    def top_k(self, k: int) -> Entries:
        """Return the k entries of largest magnitude."""

    def bucket_top_k(self, k: int, bucket: int) -> Entries:
        """Return the k entries of largest magnitude per bucket."""

    def at_least(self, threshold: float) -> Entries:
        """Return all entries with |v| >= threshold."""

    def gather(self, indices: Indices, block: int = 1) -> Values:
        """Return the blocks at these indices as one flat array."""

    def block_squares(self, block: int) -> NDArray[np.float64]:
        """Return the sum of squares per block."""


@dataclass(frozen=True)
class Sum:
    """The sum scale * a + b of two vectors, not yet computed; a velocity's term replaces b."""

    a: Values
    b: Values
    scale: float = 1.0
    velocity: kernels.Velocity | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return self.a.size

    def sample(self, stride: int) -> Values:
        """Return every stride-th value."""
        with np.errstate(all="ignore"):
            total: Values = self.a.dtype.type(self.scale) * self.a[::stride]
            if self.velocity is None:
                total += self.b[::stride]
            else:
                total += self.velocity.term(self.b, stride)
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
        """Return the k entries of largest magnitude."""
        return kernels.top_k(self.values, k)

    def bucket_top_k(self, k: int, bucket: int) -> Entries:
        """Return the k entries of largest magnitude per bucket."""
        return kernels.bucket_top_k(self.values, k, bucket)

    def at_least(self, threshold: float) -> Entries:
        """Return all entries with |v| >= threshold."""
        return kernels.at_least(self.values, threshold)

    def sample(self, stride: int) -> Values:
        """Return every stride-th value."""
        return np.ascontiguousarray(self.values[::stride])

    def gather(self, indices: Indices, block: int = 1) -> Values:
        """Return the blocks at these indices as one flat array."""
        return self.values.reshape(-1, block)[indices].reshape(-1)

    def block_squares(self, block: int) -> NDArray[np.float64]:
        """Return the sum of squares per block."""
        return kernels.block_squared_norms(self.values, block)


def as_source(vector: Any) -> Source:
    """Return a vector of the user, flat; float16 and bfloat16 become float32."""
    if isinstance(vector, np.ndarray):
        return Host(_flat(vector))
    if not is_tensor(vector):
        raise TypeError(
            f"select: vector must be a NumPy array or a torch tensor, got "
            f"{type(vector).__name__}; use np.asarray"
        )
    return _tensor_source(vector)


def _flat(array: NDArray[Any]) -> Values:
    if array.dtype.newbyteorder("=") == np.float16:
        bits = np.ascontiguousarray(array, np.float16).reshape(-1).view(np.uint16)
        return kernels.from_half(bits, False)
    values = as_values(array).reshape(-1)
    if values.dtype.kind != "f":
        raise TypeError(
            f"select: values must be float32 or float64, got {values.dtype}; convert them with "
            f".astype(np.float64)"
        )
    return values


def _tensor_source(tensor: Any) -> Source:
    """Return a view of a tensor in main memory, or the tensor on its device."""
    from .device import Device

    check_tensor("select", tensor)
    flat = tensor.detach().contiguous().reshape(-1)
    if tensor.device.type == "cpu":
        return Host(_flat(on_host(flat)))
    return Device(flat if tensor.dtype.itemsize > 2 else flat.float())
