"""The compiled inner loops of sparcml."""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


def isa() -> str:
    """Return the active instruction set."""

def isas() -> list[str]:
    """Return the instruction sets that this processor supports, best first."""

def use_isa(name: str) -> None:
    """Run the kernels on this instruction set"""

def threads() -> int:
    """Return the number of threads that a kernel may use."""

def set_threads(count: int) -> None:
    """Let kernels use this many threads; results do not depend on it."""

def usable_processors() -> int:
    """Return the number of processors that this process may use."""

def bitmap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the nnz positions of the ones in data."""

def crc32c(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], crc: int = 0) -> int:
    """Return the CRC-32C of data, continued from crc."""

def crc32_spans(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], modulus: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write zlib's CRC-32 of each data[start:stop], modulo modulus."""

def ascending_prefix(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int) -> int:
    """
    Return the length of the longest prefix that ascends strictly and is below blocks.
    """

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Sort rows by index and sum those of equal index, from first to last. Return the number of indices.
    """

MAX_EXPANSION: int = 1024

def check_message(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int | None) -> tuple[int, str, int] | None:
    """
    Check a message, also for a range of blocks if given; return what is wrong.
    """

def message_indices(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int, allocate: object) -> tuple[Any, tuple[int, str, int] | None]:
    """
    Return the memory of the indices of a checked message, and what is wrong.
    """

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]:
    """
    Return the memory and the bytes of a message, and the memory of a vector that became dense.
    """

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None:
    """Write all values of a checked message; return what is wrong."""

@overload
def compact(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the blocks that differ from fill. Return their number, at most limit + 1.
    """

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool) -> int:
    """Return the number of blocks that differ from fill."""

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write out[i] = a[i] op b[i]."""

@overload
def add_momentum(momentum: float, nesterov: bool, u: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], term: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_momentum(momentum: float, nesterov: bool, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], term: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write velocity = momentum u + g; with nesterov, velocity = momentum (u + g) and term = velocity + g.
    """

def elias_plan(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int, int]:
    """
    Return the bits of the dense and the sparse code, and the number of nonzero levels.
    """

def elias_encode(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the omega code of the levels, in words of 8 bytes."""

def elias_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, nonzeros: int, levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the levels of a code."""

def gap_plan(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
    """(r, bytes) of the section of indices"""

def gap_nbytes(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int) -> int:
    """Return the bytes of the section of indices with this r."""

def gap_encode(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the Golomb-Rice code of the differences between ascending indices.
    """

def gap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the nnz indices below blocks of a section."""

def to_grid(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Values at random on an even grid, each bucket by its norm"""

def from_grid(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""

def to_half(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """Convert float32 to the bits of float16 or bfloat16."""

def from_half(bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """Convert the bits of float16 or bfloat16 to float32."""

@overload
def linear_gradient(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, share: float, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, float, float]: ...

@overload
def linear_gradient(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, share: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, float, float]:
    """The gradient of some rows: entries, the intercept's, and the loss"""

@overload
def linear_apply_gradient(weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, rate: float, intercept: float, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

@overload
def linear_apply_gradient(weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, rate: float, intercept: float, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """One step along a gradient"""

@overload
def linear_sgd_steps(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> float: ...

@overload
def linear_sgd_steps(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> float:
    """Make one step per batch of rows. Return losses plus those of the rows."""

@overload
def linear_flush(weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_flush(weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Apply everything pending to all weights."""

@overload
def linear_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """w.x of each row"""

def linear_first_invalid_row(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], features: int) -> int:
    """
    Return the first row whose columns do not ascend or reach features, else their number.
    """

@overload
def project_rows(M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def project_rows(M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Write M Q; factors have one row per column."""

@overload
def project_columns(M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def project_columns(M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Write the product of the transpose of M and P."""

@overload
def expand_factors(P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> None: ...

@overload
def expand_factors(P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> None:
    """
    Write the product of P and the transpose of Q, and subtract it from the residual.
    """

@overload
def project_corrected_rows(residual: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: float, M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> bool: ...

@overload
def project_corrected_rows(residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: float, M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Write M = scale * residual + gradient and M Q; all finite"""

@overload
def orthonormalize(P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def orthonormalize(P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Make the rows orthonormal, in place; dependent ones become zero."""

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Merge two sorted streams. Return the number of entries written."""

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Merge sorted streams, folded per index in their order. Return the number of entries.
    """

def to_onebit(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, mean: bool, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Two levels a bucket, and which of them each value takes"""

def to_sign(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the mean magnitude per bucket, and one bit per value, set if it is >= 0.
    """

def from_bitplane(levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the level that each bit selects."""

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None:
    """Set dense[i] = dense[i] op value."""

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None:
    """Set dense[i] = value."""

def top_k_capacity(size: int, k: int) -> int:
    """Return the size that oi and ov must have for top_k."""

@overload
def top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude to the front of oi and ov."""

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out, then top_k of it, zeroed in out. Return the squared norm. add_residual explains momentum.
    """

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude of every bucket."""

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out, then bucket_top_k of it, zeroed in out. Return the squared norm. add_residual explains momentum.
    """

@overload
def at_least(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def at_least(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the entries of at lowest this magnitude that fit. Return their number.
    """

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> tuple[int, float]: ...

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> tuple[int, float]:
    """
    Write scale residual + gradient to out, then at_least of it. Return the number of entries and the squared norm. add_residual explains momentum.
    """

@overload
def add_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def add_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out. Return its squared norm. With momentum = (u, velocity, m, nesterov), the term of add_momentum replaces the gradient, and velocity receives the new momentum.
    """

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the squared norm of every block."""

def to_integer(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, max_multiple: int, packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Pack multiples of a step. Return the number of values known to be valid.
    """

def from_integer(packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, max_multiple: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Write the multiples. Return the number of values known to be valid."""

def mark_columns(columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Set the bits of the columns."""

def count_columns(bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the number of bits set before each word. Return the number of all.
    """

def column_positions(columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the positions of columns among the active ones; 2^32 - 1 for others.
    """

class MessageMemory:
    """Memory of a result; it has the buffer protocol."""

def message_memory(nbytes: int) -> memoryview:
    """Return memory that later messages reuse."""

def release_messages() -> int:
    """Free the unused memory of messages; return its bytes."""

class MessageLoop:
    """Collectives whose rounds run without the GIL."""

    def poll(self) -> bool:
        """Make progress in the current wait; return whether over."""

    def barrier(self, host: object, code: int, sequence: int, traced: bool, dtype: int) -> tuple[Any, ...]:
        """Wait for all ranks; return the counters."""

    def agree(self, host: object, code: int, sequence: int, traced: bool, round: int, dtype: int, blocks: int, block: int, nnz: int) -> tuple[Any, ...]:
        """
        Return the nnz of all ranks, or their headers if they differ, and the counters.
        """

    def allgather(self, host: object, code: int, sequence: int, traced: bool, dtype: int, blocks: int, block: int, message: object | None, indices: object | None, values: object | None, out: object | None) -> tuple[Any, ...]:
        """Gather or add the vectors of all ranks; return them and the counters."""

    def add_from(self, host: object, code: int, state: CallState, source: VectorSource, out: object) -> tuple[Any, ...]:
        """Add all vectors of the sources of all ranks; return the counters."""

    def allreduce(self, host: object, code: int, sequence: int, traced: bool, algorithm: int, op: int, dtype: int, blocks: int, block: int, indices: object | None, values: object) -> tuple[Any, ...]:
        """Reduce a vector; return the result and the counters."""

    def allreduce_quantized(self, host: object, code: int, sequence: int, traced: bool, algorithm: int, op: int, dtype: int, blocks: int, block: int, indices: object | None, values: object, own: bytes, reduced: bytes, seed: int, wants_seen: bool) -> tuple[Any, ...]:
        """
        Reduce a vector with quantized values; return the result, what the ranks saw, and the counters.
        """

    def native(self, host: object, agreement: int, sequence: int, traced: bool, dtype: int, blocks: int, block: int, op: int, type: int, handle: int, values: object, out: object) -> tuple[Any, ...]:
        """
        Run the engine's allreduce; return whether there is a NaN, and the counters.
        """

class VectorSource:
    """Sparse float64 vectors, computed one after the other."""

    @property
    def size(self) -> int:
        """Size of the vectors."""

def host_loop(rank: int, size: int) -> MessageLoop:
    """Return a loop whose messages the host moves."""

def mpi_loop(rank: int, size: int, handle_bytes: int, functions: Sequence[int], handles: Sequence[int], any_source: int, any_tag: int, tag_at: int, segment_bytes: int, paced_bytes: int, spin: float, give_way: float) -> MessageLoop:
    """
    Return a loop over functions of an MPI library, given by their addresses.
    """

def linear_scd_steps(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, l1: float, l2: float, share: float, ranks: float, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], trust_radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margin_changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Make one step per chosen column, in order."""

def linear_intercept_step(labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, share: float, margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Update the intercept and the margins."""

def linear_take_margin_changes(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin_changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Move the changes of the margins to sorted sparse entries; return their number.
    """

class SCDRounds(VectorSource):
    """Rounds of coordinate descent on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block_size: int, rounds: int, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, l1: float, l2: float, share: float, ranks: float, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], trust_radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margin_changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class StepsFloat32:
    """Steps between allreduces."""

class SGDStepsFloat32(StepsFloat32):
    """Steps of SGD on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> None: ...

    @property
    def size(self) -> int:
        """Size of the vectors."""

    @property
    def made(self) -> int:
        """Steps that were made."""

    @property
    def losses(self) -> float:
        """Sum of the losses of the rows so far."""

    @property
    def seconds(self) -> float:
        """Seconds of computing so far."""

    def vector(self) -> tuple[int, Any, Any] | None:
        """
        Return nnz, indices and values of the current vector, or None after the last.
        """

    def apply(self, indices: object | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Apply the sum of the current vector over all ranks."""

class StepsFloat64:
    """Steps between allreduces."""

class SGDStepsFloat64(StepsFloat64):
    """Steps of SGD on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> None: ...

    @property
    def size(self) -> int:
        """Size of the vectors."""

    @property
    def made(self) -> int:
        """Steps that were made."""

    @property
    def losses(self) -> float:
        """Sum of the losses of the rows so far."""

    @property
    def seconds(self) -> float:
        """Seconds of computing so far."""

    def vector(self) -> tuple[int, Any, Any] | None:
        """
        Return nnz, indices and values of the current vector, or None after the last.
        """

    def apply(self, indices: object | None, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Apply the sum of the current vector over all ranks."""

class CallState:
    """The current or last call of a communicator."""

    def __init__(self) -> None: ...

    @property
    def sequence(self) -> int:
        """Number of the call."""

    @sequence.setter
    def sequence(self, arg: int, /) -> None: ...

    def begin(self, name: object) -> int:
        """Begin the next call; return its number."""

    def end(self) -> None:
        """End the call."""

    def __str__(self) -> str: ...

class Totals:
    """Sums of the counters of prepared calls."""

    def __init__(self) -> None: ...

    def drain(self) -> tuple[Any, ...] | None:
        """Return the counters since the last time, or None if there are none."""

class PreparedCalls:
    """Allreduces that were prepared."""

    def __init__(self, host: object, loop: object, transport: object, stats: object, busy: object, state: object, totals: object, stream: object, frombuffer: object, uint32: object) -> None: ...

    def prepare(self, algorithm: object, dtype: object, size: int, block: int, name: object, choice: object | None, code: int, number: int, dtype_code: int, nnz: int, predicted: float) -> None:
        """Prepare sums of a shape, for vectors of similar nnz."""

    def allreduce(self, x: object | None, op: object | None, algorithm: object | None) -> object:
        """Return the sum, or None if it is not prepared."""

    @overload
    def reduce_steps(self, steps: StepsFloat32, dtype: object, algorithm: object) -> bool: ...

    @overload
    def reduce_steps(self, steps: StepsFloat64, dtype: object, algorithm: object) -> bool:
        """Make steps; return whether all are made, or Python must make one."""

    def take_over(self) -> bool:
        """Return whether an error has left a call of this thread, and its lock."""

    def clear(self) -> None:
        """Forget all prepared sums."""

@overload
def weighted_sum(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, base: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> bool: ...

@overload
def weighted_sum(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> bool:
    """
    Write the weighted sum of vectors, minus rate g, minus base; return whether it is finite.
    """

@overload
def add_differences(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_differences(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write x - rate g plus gamma times the weighted sum of the differences to own.
    """

@overload
def add_differences_at(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_differences_at(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the results of add_differences at some blocks of out."""

def moments(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, float, int]:
    """
    Return the max magnitude, sum, sum of squares and count of values except NaN.
    """

def to_natural(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Round each value stochastically to a neighbouring power of two."""

def from_natural(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""

MAX_FUSED_BUCKET: int = 2048

def to_grid_corrected(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, corrected: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, bucket: int, levels: int, bits: int, norm: int, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, bool]:
    """Encode scale * residual + gradient; (nonzeros, all finite)"""

def mean_from_grid(codes: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]], own: int, bucket: int, levels: int, bits: int, mean: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], corrected: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
    """Mean of codes; subtract one from the corrected gradient"""

SVMLIGHT_PADDING: int = 8

def svmlight_row_bytes(entries: int) -> int:
    """Return the maximum bytes of a row."""

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]: ...

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
    """
    Write the rows from row that are certain to fit. Return (bytes, next row).
    """

class SvmlightParser32:
    """Parser of rows in the SVMlight format."""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """Read the complete lines that start before stop. Return their bytes."""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """The first error as (line, column, message), or None."""

    @property
    def lines(self) -> int:
        """Number of lines read."""

    @property
    def rows(self) -> int: ...

    @property
    def words(self) -> list[bytes]:
        """Labels that are words; their labels are positions in it."""

    @property
    def smallest(self) -> int:
        """Smallest index so far; highest if there is none."""

    @property
    def largest(self) -> int:
        """Largest index so far."""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return (indptr, indices, values, labels). The parser cannot be used afterwards.
        """

class SvmlightParser64:
    """Parser of rows in the SVMlight format."""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """Read the complete lines that start before stop. Return their bytes."""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """The first error as (line, column, message), or None."""

    @property
    def lines(self) -> int:
        """Number of lines read."""

    @property
    def rows(self) -> int: ...

    @property
    def words(self) -> list[bytes]:
        """Labels that are words; their labels are positions in it."""

    @property
    def smallest(self) -> int:
        """Smallest index so far; highest if there is none."""

    @property
    def largest(self) -> int:
        """Largest index so far."""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return (indptr, indices, values, labels). The parser cannot be used afterwards.
        """

def to_table(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Round values stochastically to a table of levels, relative to the norm of their bucket.
    """

def from_table(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""
