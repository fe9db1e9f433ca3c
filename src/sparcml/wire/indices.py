"""Index formats: which entries a message has. Every section is a multiple of 8 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DENSE, U32, GAP, BITMAP = range(4)
NAMES = {DENSE: "dense", U32: "u32", GAP: "gap", BITMAP: "bitmap"}
MOST_BYTES = 2**32 - 8  # the header counts a section's bytes in 32 bits


def padded(nbytes: int) -> int:
    """Rounded up to 8, so that the values that follow are aligned."""
    return (nbytes + 7) & ~7


def bitmap_nbytes(blocks: int) -> int:
    """One bit a block."""
    return (blocks + 63) // 64 * 8


def cheapest(indices: NDArray[np.uint32], blocks: int) -> tuple[int, int, int]:
    """The format with the fewest bytes: (format, bytes, its parameter)."""
    nnz = len(indices)
    shift, gap = kernels.gap_plan(indices)
    options = [
        (bitmap_nbytes(blocks), BITMAP, 0),
        (gap, GAP, shift),
        (padded(4 * nnz), U32, 0),
    ]
    nbytes, kind, parameter = min(o for o in options if o[0] <= MOST_BYTES)
    return kind, nbytes, parameter


def write(
    kind: int,
    parameter: int,
    indices: NDArray[np.uint32],
    blocks: int,
    out: NDArray[np.uint8],
) -> None:
    """Fill a section of exactly the size that `cheapest` gave."""
    if kind == GAP:
        kernels.gap_encode(indices, parameter, out=out)
    elif kind == BITMAP:
        kernels.bitmap_encode(indices, blocks, out=out)
    elif kind == U32:
        out[: 4 * len(indices)] = indices.view(np.uint8)
        out[4 * len(indices) :] = 0


def read(
    kind: int, section: NDArray[np.uint8], nnz: int, blocks: int
) -> NDArray[np.uint32] | None:
    """The indices, checked: strictly ascending and below `blocks`. None if dense."""
    if kind not in NAMES:
        raise WireError(f"index format at offset 9 is unknown: {kind}")
    try:
        if kind == GAP:
            return kernels.gap_decode(section, nnz, blocks)
        if kind == BITMAP:
            return kernels.bitmap_decode(section, nnz, blocks)
    except ValueError as error:
        raise WireError(f"{NAMES[kind]} section: {error}") from None
    if kind == DENSE:
        if nnz != blocks or len(section):
            raise WireError("a dense message must have all entries and no indices")
        return None
    return _read_u32(section, nnz, blocks)


def _read_u32(section: NDArray[np.uint8], nnz: int, blocks: int) -> NDArray[np.uint32]:
    if len(section) != padded(4 * nnz) or section[4 * nnz :].any():
        raise WireError(
            f"u32 section of {nnz} entries has {len(section)} bytes, or padding"
        )
    indices = section[: 4 * nnz].view(np.uint32)
    bad = kernels.ascending_prefix(indices, blocks)
    if bad < nnz:
        raise WireError(
            f"index {indices[bad]} at entry {bad} is not above its predecessor and below "
            f"{blocks}"
        )
    return indices
