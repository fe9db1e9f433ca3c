"""The compiled inner loops of sparcml."""

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

def crc32c(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], crc: int = 0) -> int:
    """CRC-32C of data, going on from crc"""

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """out[i] = a[i] op b[i]"""

def gap_plan(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
    """(r, bytes) of the section of indices"""

def gap_nbytes(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int) -> int:
    """bytes of the section of indices with this r"""

def gap_encode(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Golomb-Rice code of the differences of strictly ascending indices"""

def gap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """the nnz indices below blocks that data is the section of"""

def to_half(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """float32 to the bits of float16 or bfloat16"""

def from_half(bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """the bits of float16 or bfloat16 to float32"""
