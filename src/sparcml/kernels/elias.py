"""Levels in Elias's omega code; `cpp/kernels/elias/elias.h` draws the layout."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import buffer_pool
from . import _core

Levels = NDArray[np.int8]
Bytes = NDArray[np.uint8]


class EliasPlan(NamedTuple):
    """What the two codes of some levels take."""

    dense_bits: int
    sparse_bits: int
    nonzeros: int


def elias_plan(levels: Levels) -> EliasPlan:
    """Bits of the dense and of the sparse code, and how many levels are not zero."""
    return EliasPlan(*_core.elias_plan(levels))


def elias_encode(levels: Levels, sparse: bool = False, bits: int | None = None) -> Bytes:
    """Words of 8 bytes; `bits` is what the plan says, if it was asked already."""
    if bits is None:
        plan = elias_plan(levels)
        bits = plan.sparse_bits if sparse else plan.dense_bits
    out: Bytes = buffer_pool.empty(-(-bits // 64) * 8, np.uint8)
    _core.elias_encode(levels, sparse, out)
    return out


def elias_decode(
    data: Bytes, count: int, sparse: bool = False, nonzeros: int = 0
) -> Levels:
    """So many levels, of which `nonzeros` are in a sparse code; ValueError if it is none."""
    if not sparse and count > 8 * data.size:  # before anything is allocated for them
        raise ValueError(f"elias_decode: {data.size} bytes cannot hold {count} levels")
    levels: Levels = buffer_pool.empty(count, np.int8)
    _core.elias_decode(data, sparse, nonzeros, levels)
    return levels
