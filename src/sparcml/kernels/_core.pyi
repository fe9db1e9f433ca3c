"""The compiled inner loops of sparcml."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def isa() -> str:
    """The instruction set the kernels run on"""

def isas() -> list[str]:
    """The instruction sets this processor can run, best first"""

def use_isa(name: str) -> None:
    """Run the kernels on this instruction set"""

def bitmap_encode(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """one bit per block, set for those in indices"""

def bitmap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """the nnz positions of the ones in data"""

def linear_scd_steps(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, l1: float, l2: float, share: float, parties: float, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], trust: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], moved: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Steps on the chosen columns, one after the other"""

def linear_intercept_step(labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, share: float, margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The intercept's step"""

def linear_combine_columns(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """The sum of slope * x over the chosen rows, sorted"""

def crc32c(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], crc: int = 0) -> int:
    """CRC-32C of data, going on from crc"""

def crc32_spans(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], modulus: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """zlib's CRC-32 of each data[start:stop], modulo modulus"""

def ascending_prefix(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int) -> int:
    """
    The first position that does not ascend or is not below blocks; the size if none
    """

@overload
def compact(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Writes the blocks that differ from fill; returns their number, at most limit + 1
    """

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int:
    """The number of blocks that differ from fill"""

@overload
def bitmap_compact(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, limit: int, plane: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def bitmap_compact(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, limit: int, plane: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Writes a bit plane and the values that differ from fill, bit for bit; returns their number, at most limit + 1
    """

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """out[i] = a[i] op b[i]"""

def elias_plan(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int, int]:
    """Bits of the dense and of the sparse code, and levels not zero"""

def elias_encode(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Levels in Elias's omega code, in words of 8 bytes"""

def elias_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, nonzeros: int, levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The levels that the words are the code of"""

@overload
def bitmap_expand(bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def bitmap_expand(bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The values where bits has ones, fill elsewhere"""

def gap_plan(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
    """(r, bytes) of the section of indices"""

def gap_nbytes(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int) -> int:
    """bytes of the section of indices with this r"""

def gap_encode(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Golomb-Rice code of the differences of strictly ascending indices"""

def gap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """the nnz indices below blocks that data is the section of"""

def to_grid(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Values at random on an even grid, each bucket by its norm"""

def from_grid(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The values that such a code stands for"""

def to_half(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """float32 to the bits of float16 or bfloat16"""

def from_half(bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """the bits of float16 or bfloat16 to float32"""

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
    """Steps over batches of rows; adds the losses before each"""

@overload
def linear_flush(weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_flush(weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Writes what is due to all weights"""

@overload
def linear_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """w.x of each row"""

def linear_first_invalid_row(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], features: int) -> int:
    """
    The first row with columns out of order or beyond the features; how many if none
    """

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Merges two sorted streams; returns the number of entries written"""

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Merges sorted streams, per index in their order; returns the number of entries written
    """

def to_onebit(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, mean: bool, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Two levels a bucket, and which of them each value takes"""

def to_sign(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The mean magnitude of each bucket, and which values are not below zero"""

def from_bitplane(levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The level that each bit chooses"""

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int) -> None:
    """dense[i] = dense[i] op value"""

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int) -> None:
    """dense[i] = value"""

def top_k_capacity(size: int, k: int) -> int:
    """Return the size that oi and ov must have for top_k."""

@overload
def top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude to the front of oi and ov."""

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Write residual + gradient to out, then top_k of it, zeroed in out. Return the squared norm.
    """

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude of every bucket."""

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Write residual + gradient to out, then bucket_top_k of it, zeroed in out. Return the squared norm.
    """

@overload
def at_least(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def at_least(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the entries of at lowest this magnitude that fit. Return their number.
    """

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, float]: ...

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, float]:
    """
    Write residual + gradient to out, then at_least of it. Return the number of entries and the squared norm.
    """

@overload
def add_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

@overload
def add_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """Write residual + gradient to out. Return its squared norm."""

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the squared norm of every block."""

def to_integer(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, most: int, packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Packs multiples of a step; how many values are known to be such"""

def from_integer(packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, most: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """The multiples; how many values are known to be such"""

def mark_columns(numbers: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], plane: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Sets the bits of the numbers"""

def count_columns(plane: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Counts the bits before each word, and all"""

def column_positions(numbers: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], plane: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Places of numbers among those in use; 2^32 - 1 for others"""

def moments(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, float, int]:
    """
    The largest magnitude, sum, sum of squares and number of what is not NaN
    """

def to_natural(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Each value at random to a power of two next to it"""

def from_natural(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The values that such a code stands for"""

SVMLIGHT_PADDING: int = 8

def svmlight_row_bytes(entries: int) -> int:
    """the most bytes that a row can take"""

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]: ...

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
    """rows from row on as text, those that surely fit; (bytes, the next row)"""

class SvmlightParser32:
    """Rows out of text in the SVMlight format"""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """read the whole lines that start before stop; the bytes they had"""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """(line, column, what is wrong), or None"""

    @property
    def lines(self) -> int:
        """read so far"""

    @property
    def rows(self) -> int: ...

    @property
    def smallest(self) -> int:
        """index so far; the highest, if there is none"""

    @property
    def largest(self) -> int:
        """index so far"""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(indptr, indices, values, labels); nothing more can be fed"""

class SvmlightParser64:
    """Rows out of text in the SVMlight format"""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """read the whole lines that start before stop; the bytes they had"""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """(line, column, what is wrong), or None"""

    @property
    def lines(self) -> int:
        """read so far"""

    @property
    def rows(self) -> int: ...

    @property
    def smallest(self) -> int:
        """index so far; the highest, if there is none"""

    @property
    def largest(self) -> int:
        """index so far"""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(indptr, indices, values, labels); nothing more can be fed"""

def to_table(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Values at random on any levels, each bucket by its norm"""

def from_table(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The values that such a code stands for"""

owe = add_residual

owe_top_k = top_k_with_residual

owe_bucket_top_k = bucket_top_k_with_residual

owe_at_least = at_least_with_residual

block_squares = block_squared_norms

top_k_room = top_k_capacity

place = scatter_assign

count = count_nonfill

ascending = ascending_prefix

squeeze = bitmap_compact

expand = bitmap_expand

to_whole = to_integer

from_whole = from_integer

used_mark = mark_columns

used_before = count_columns

used_renumber = column_positions

one_bit = to_onebit

signs = to_sign

two_levels = from_bitplane

linear_run = linear_sgd_steps

linear_apply = linear_apply_gradient

linear_settle = linear_flush

linear_misplaced = linear_first_invalid_row

linear_descend = linear_scd_steps

linear_shift = linear_intercept_step

linear_combine = linear_combine_columns
