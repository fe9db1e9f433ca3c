"""Torus: a grid that wraps around in every dimension."""

from __future__ import annotations

from ...validation import as_integer
from .shifts import ShiftTopology, shift_topology


def torus(*sides: int) -> ShiftTopology:
    """Return the torus with these sides; rank r is cell r in row-major order.

    A rank has two neighbours per dimension, and one along a side of 2. All weights are
    1 / (1 + degree): 1/5 on a torus of two dimensions with sides above 2.

    Args:
        *sides: Number of ranks along each dimension, such as `torus(4, 4)` for 16 ranks.
    """
    if not sides:
        raise ValueError("torus: sides must be given, such as torus(4, 4), got none")
    shape = tuple(as_integer("torus", "sides", side, 1) for side in sides)
    dimensions = range(len(shape))
    shifts = [
        tuple(by if d == dimension else 0 for d in dimensions)
        for dimension in dimensions
        for by in (-1, 1)
    ]
    return shift_topology(f"torus({', '.join(map(str, shape))})", shape, [shifts])
