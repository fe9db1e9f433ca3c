"""Index formats: the positions of the entries. Sections have a multiple of 8 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DENSE, U32, GAP, BITMAP = range(4)
NAMES = {DENSE: "dense", U32: "u32", GAP: "gap", BITMAP: "bitmap"}
MAX_BYTES = 2**32 - 8  # the field of the header has 32 bits


def padded(nbytes: int) -> int:
    """Return nbytes rounded up to a multiple of 8, which aligns the values."""
    return (nbytes + 7) & ~7


def bitmap_nbytes(blocks: int) -> int:
    """Return the bytes of a bitmap: one bit per block, in words of 8 bytes."""
    return (blocks + 63) // 64 * 8


def cheapest(indices: NDArray[np.uint32], blocks: int) -> tuple[int, int, int]:
    """Return the smallest format as (format, bytes, parameter)."""
    nnz = len(indices)
    shift, gap = kernels.gap_plan(indices)
    options = [
        (bitmap_nbytes(blocks), BITMAP, 0),
        (gap, GAP, shift),
        (padded(4 * nnz), U32, 0),
    ]
    nbytes, index_format, parameter = min(o for o in options if o[0] <= MAX_BYTES)
    return index_format, nbytes, parameter


def write(
    index_format: int,
    parameter: int,
    indices: NDArray[np.uint32],
    blocks: int,
    out: NDArray[np.uint8],
) -> None:
    """Write a section of the size that `cheapest` returned."""
    if index_format == GAP:
        kernels.gap_encode(indices, parameter, out=out)
    elif index_format == BITMAP:
        kernels.bitmap_encode(indices, blocks, out=out)
    elif index_format == U32:
        out[: 4 * len(indices)] = indices.view(np.uint8)
        out[4 * len(indices) :] = 0


def read(
    index_format: int, section: NDArray[np.uint8], nnz: int, blocks: int
) -> NDArray[np.uint32] | None:
    """Return checked indices, strictly ascending and below `blocks`; None if dense."""
    if index_format not in NAMES:
        raise WireError(f"index format at offset 9 is unknown: {index_format}")
    try:
        if index_format == GAP:
            return kernels.gap_decode(section, nnz, blocks)
        if index_format == BITMAP:
            return kernels.bitmap_decode(section, nnz, blocks)
    except ValueError as error:
        raise WireError(f"{NAMES[index_format]} section: {error}") from None
    if index_format == DENSE:
        if nnz != blocks or len(section):
            raise WireError("a dense message must have nnz = blocks and no index section")
        return None
    return _read_u32(section, nnz, blocks)


def _read_u32(section: NDArray[np.uint8], nnz: int, blocks: int) -> NDArray[np.uint32]:
    if len(section) != padded(4 * nnz) or section[4 * nnz :].any():
        raise WireError(
            f"u32 section of {nnz} entries must have {padded(4 * nnz)} bytes with zero padding, "
            f"got {len(section)} bytes"
        )
    indices = section[: 4 * nnz].view(np.uint32)
    bad = kernels.ascending_prefix(indices, blocks)
    if bad < nnz:
        raise WireError(
            f"indices must be ascending and below {blocks}, got {indices[bad]} at entry {bad}"
        )
    return indices
