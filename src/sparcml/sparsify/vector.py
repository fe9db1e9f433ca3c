"""Sources of a selection: an array in memory, or a tensor on a device.

Both have the same methods, so each sparsifier is written once.
"""

from __future__ import annotations

import sys
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


LANES = 8  # partial sums of the kernels


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
    check_tensor("select", tensor)
    flat = tensor.detach().contiguous().reshape(-1)
    if tensor.device.type == "cpu":
        return Host(_flat(on_host(flat)))
    return Device(flat if tensor.dtype.itemsize > 2 else flat.float())


class Device:
    """A flat tensor of float32 or float64 on any device, with torch operations.

    They select the same entries as the kernels, ties and NaN included. Only the selection is
    copied to the host.
    """

    def __init__(self, tensor: Any) -> None:
        self.torch = sys.modules["torch"]
        self.tensor = tensor

    @property
    def size(self) -> int:
        """Number of values."""
        return int(self.tensor.numel())

    def top_k(self, k: int) -> Entries:
        """Return all entries above the k-th largest, and the first of those equal to it."""
        if not k:
            return self._entries(self.torch.empty(0, dtype=self.torch.int64))
        ranks = self._ranks(self.tensor)
        smallest = self.torch.topk(ranks, k, sorted=False).values.min()
        chosen = ranks > smallest
        equal = self.torch.nonzero(ranks == smallest).reshape(-1)
        chosen[equal[: k - int(chosen.sum())]] = True
        return self._entries(self.torch.nonzero(chosen).reshape(-1))

    def bucket_top_k(self, k: int, bucket: int) -> Entries:
        """Return the k largest per bucket by a stable sort; padding of the last ranks lowest."""
        torch, size = self.torch, self.size
        bucket = min(bucket, max(1, size))
        rows = -(-size // bucket)
        ranks = self._ranks(self.tensor)
        ranks = torch.nn.functional.pad(ranks, (0, rows * bucket - size), value=-1)
        order = torch.sort(ranks.reshape(rows, bucket), dim=1, descending=True, stable=True)
        starts = torch.arange(rows, device=ranks.device)[:, None] * bucket
        indices = torch.sort((order.indices[:, :k] + starts).reshape(-1)).values
        return self._entries(indices[indices < size])

    def at_least(self, threshold: float) -> Entries:
        """Return all entries whose magnitude has at least the bits of the threshold."""
        bound = self._ranks(self.torch.tensor([threshold], dtype=self.tensor.dtype))
        reached = self._ranks(self.tensor) >= bound.to(self.tensor.device)
        return self._entries(self.torch.nonzero(reached).reshape(-1))

    def sample(self, stride: int) -> Values:
        """Return every stride-th value."""
        return self._host(self.tensor[::stride].contiguous())

    def gather(self, indices: Indices, block: int = 1) -> Values:
        """Return the blocks at these indices as one flat array."""
        positions = self.torch.from_numpy(indices.astype(np.int64)).to(self.tensor.device)
        return self._host(self.tensor.reshape(-1, block)[positions].reshape(-1))

    def block_squares(self, block: int) -> NDArray[np.float64]:
        """Return sums of squares, added in the order of the kernels: lane i mod 8, then halves."""
        torch, size = self.torch, self.size
        blocks, rows = -(-size // block), -(-block // LANES)
        squares = torch.nn.functional.pad(
            self.tensor.double().square(), (0, blocks * block - size)
        )
        padded = torch.nn.functional.pad(
            squares.reshape(blocks, block), (0, rows * LANES - block)
        )
        lanes = torch.zeros(blocks, LANES, dtype=torch.float64, device=self.tensor.device)
        for row in range(rows):
            lanes += padded[:, row * LANES : (row + 1) * LANES]
        for half in (4, 2, 1):
            lanes = lanes[:, :half] + lanes[:, half : 2 * half]
        total = lanes[:, 0]
        return self._host(torch.where(total.isnan(), torch.nan, total))

    def _ranks(self, tensor: Any) -> Any:
        """Return the bits of |v|, which order magnitudes as integers."""
        torch = self.torch
        wide = tensor.dtype == torch.float64
        bits = tensor.view(torch.int64 if wide else torch.int32)
        return bits & torch.iinfo(bits.dtype).max

    def _entries(self, indices: Any) -> Entries:
        positions = indices.to(self.tensor.device)
        return self._host(positions).astype(np.uint32), self._host(self.tensor[positions])

    @staticmethod
    def _host(tensor: Any) -> NDArray[Any]:
        array: NDArray[Any] = tensor.cpu().numpy()
        return array
