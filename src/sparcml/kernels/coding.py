"""Codes of indices, a checksum and short floats.

The layouts of the sections are drawn in `cpp/kernels/gap/gap.h` and
`cpp/kernels/bitmap/bitmap.h`, and defined by `reference/coding.py`.
"""

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Bytes = NDArray[np.uint8]
Indices = NDArray[np.uint32]


def gap_plan(indices: Indices) -> tuple[int, int]:
    """The r that suits random indices, and the bytes of their section."""
    return _core.gap_plan(indices)


def gap_encode(indices: Indices, r: int | None = None, out: Bytes | None = None) -> Bytes:
    """Golomb-Rice code of the differences of strictly ascending indices.

    Args:
        indices: Strictly ascending, below 2^32 - 1.
        r: How many low bits of a difference are stored as they are; `gap_plan` by
            default.
        out: Where to; exactly as long as the section.
    """
    if r is None:
        r, nbytes = _core.gap_plan(indices)
    elif out is None:
        nbytes = _core.gap_nbytes(indices, r)
    if out is None:
        out = buffer_pool.empty(nbytes, np.uint8)
    _core.gap_encode(indices, r, out)
    return out


def gap_decode(data: Bytes, nnz: int, blocks: int) -> Indices:
    """The nnz indices below blocks; ValueError if data is no section of such."""
    if nnz > 8 * data.size:  # before anything is allocated for them
        raise ValueError(f"gap_decode: {data.size} bytes cannot hold {nnz} entries")
    out = buffer_pool.empty(nnz, np.uint32)
    _core.gap_decode(data, nnz, blocks, out)
    return out


def bitmap_encode(indices: Indices, blocks: int, out: Bytes | None = None) -> Bytes:
    """One bit per block, set for those in indices, in words of 8 bytes."""
    if out is None:
        out = buffer_pool.empty(-(-blocks // 64) * 8, np.uint8)
    _core.bitmap_encode(indices, blocks, out)
    return out


def bitmap_decode(data: Bytes, nnz: int, blocks: int) -> Indices:
    """The nnz indices below blocks; ValueError if data is no section of such."""
    if nnz > 8 * data.size:  # before anything is allocated for them
        raise ValueError(f"bitmap_decode: {data.size} bytes cannot hold {nnz} entries")
    out = buffer_pool.empty(nnz, np.uint32)
    _core.bitmap_decode(data, nnz, blocks, out)
    return out


def crc32c(data: Bytes, crc: int = 0) -> int:
    """CRC-32C of data, going on from crc as `zlib.crc32` does."""
    return _core.crc32c(data, crc)


def crc32_spans(
    data: Bytes, starts: NDArray[np.int64], stops: NDArray[np.int64], modulus: int
) -> NDArray[np.uint32]:
    """`zlib.crc32` of each data[start:stop], modulo `modulus`."""
    out = np.empty(starts.size, np.uint32)
    _core.crc32_spans(data, starts, stops, modulus, out)
    return out


def to_half(
    values: NDArray[np.float32],
    bfloat: bool = False,
    out: NDArray[np.uint16] | None = None,
) -> NDArray[np.uint16]:
    """The bits of values as float16 or bfloat16, to nearest, ties to even."""
    if out is None:
        out = buffer_pool.empty(values.size, np.uint16)
    _core.to_half(values, out, bfloat)
    return out


def from_half(
    bits: NDArray[np.uint16],
    bfloat: bool = False,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """The values that have these bits as float16 or bfloat16."""
    if out is None:
        out = buffer_pool.empty(bits.size, np.float32)
    _core.from_half(bits, out, bfloat)
    return out
