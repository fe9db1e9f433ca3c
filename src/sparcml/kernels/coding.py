"""Codes of indices and levels, checksums, and 16-bit floats.

`cpp/kernels/{gap,bitmap,elias}/*.h` draw the layouts; `reference.coding` defines them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Bytes = NDArray[np.uint8]
Indices = NDArray[np.uint32]
Levels = NDArray[np.int8]


def gap_encode(indices: Indices, r: int | None = None, out: Bytes | None = None) -> Bytes:
    """Return the Golomb-Rice code of the differences between ascending indices.

    Args:
        indices: Strictly ascending indices below 2^32 - 1.
        r: Rice parameter: the number of low bits stored as they are. Default: `gap_plan`.
        out: Output array with exactly the size of the section. Default: a new array.
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
    """Return the `nnz` indices below `blocks` of a section.

    Raises:
        ValueError: The data is not a section with these numbers.
    """
    if nnz > 8 * data.size:  # checked before memory is allocated for a hostile nnz
        raise ValueError(f"gap_decode: {data.size} bytes cannot hold {nnz} entries")
    out = buffer_pool.empty(nnz, np.uint32)
    _core.gap_decode(data, nnz, blocks, out)
    return out


def bitmap_decode(data: Bytes, nnz: int, blocks: int) -> Indices:
    """Return the `nnz` indices below `blocks` whose bits are set, in words of 8 bytes.

    Raises:
        ValueError: The data is not a bitmap with these numbers.
    """
    if nnz > 8 * data.size:  # checked before memory is allocated for a hostile nnz
        raise ValueError(f"bitmap_decode: {data.size} bytes cannot hold {nnz} entries")
    out = buffer_pool.empty(nnz, np.uint32)
    _core.bitmap_decode(data, nnz, blocks, out)
    return out


class EliasPlan(NamedTuple):
    """Sizes of the two Elias codes of an array of levels."""

    dense_bits: int
    sparse_bits: int
    nonzeros: int


def elias_plan(levels: Levels) -> EliasPlan:
    """Return the bits of the dense and the sparse code, and the number of nonzero levels."""
    return EliasPlan(*_core.elias_plan(levels))


def elias_encode(levels: Levels, sparse: bool = False, bits: int | None = None) -> Bytes:
    """Return the Elias omega code of the levels, in words of 8 bytes.

    Args:
        levels: The levels.
        sparse: Encode only the nonzero levels, with the gaps between them.
        bits: The number of bits, if `elias_plan` has counted them already.
    """
    if bits is None:
        bits = _core.elias_plan(levels)[int(sparse)]
    out = buffer_pool.empty(-(-bits // 64) * 8, np.uint8)
    _core.elias_encode(levels, sparse, out)
    return out


def elias_decode(
    data: Bytes, count: int, sparse: bool = False, nonzeros: int = 0
) -> Levels:
    """Return `count` levels, of which a sparse code holds the `nonzeros` nonzero ones.

    Raises:
        ValueError: The data is not a code with these numbers.
    """
    if not sparse and count > 8 * data.size:  # before memory is allocated, as above
        raise ValueError(f"elias_decode: {data.size} bytes cannot hold {count} levels")
    levels: Levels = buffer_pool.empty(count, np.int8)
    _core.elias_decode(data, sparse, nonzeros, levels)
    return levels


def crc32_spans(
    data: Bytes, starts: NDArray[np.int64], stops: NDArray[np.int64], modulus: int
) -> NDArray[np.uint32]:
    """Return `zlib.crc32` of each data[start:stop], modulo `modulus`."""
    out = np.empty(starts.size, np.uint32)
    _core.crc32_spans(data, starts, stops, modulus, out)
    return out


def to_half(
    values: NDArray[np.float32],
    bfloat: bool = False,
    out: NDArray[np.uint16] | None = None,
) -> NDArray[np.uint16]:
    """Return the bits of values as float16 or bfloat16, rounded to nearest even."""
    if out is None:
        out = buffer_pool.empty(values.size, np.uint16)
    _core.to_half(values, out, bfloat)
    return out


def from_half(
    bits: NDArray[np.uint16],
    bfloat: bool = False,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return the values with these bits as float16 or bfloat16."""
    if out is None:
        out = buffer_pool.empty(bits.size, np.float32)
    _core.from_half(bits, out, bfloat)
    return out
