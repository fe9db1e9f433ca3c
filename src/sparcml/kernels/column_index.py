"""Which numbers are in use, and their places among those: typed entrances to the loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import _core
from .coding import bitmap_decode

INACTIVE = 2**32 - 1

Numbers = NDArray[np.uint32]


class ColumnBitmap:
    """A set of numbers below `size`, of one and a half bits each.

    Args:
        size: One more than the largest number there may be.
    """

    def __init__(self, size: int) -> None:
        self._size, self._count = size, 0
        self._plane = np.zeros(-(-size // 64), np.uint64)
        self._before = np.zeros(self._plane.size, np.uint32)

    def add(self, numbers: Numbers) -> None:
        """Put in numbers, in any order and any often; `count` must follow."""
        _core.used_mark(numbers, self._plane)

    def count(self) -> int:
        """Count them."""
        self._count = _core.used_before(self._plane, self._before)
        return self._count

    def columns(self) -> Numbers:
        """All that are in, ascending."""
        return bitmap_decode(self._plane.view(np.uint8), self._count, self._size)

    def positions(self, numbers: Numbers) -> Numbers:
        """How many smaller ones are in; INACTIVE for numbers that are not in themselves."""
        out = np.empty(numbers.size, np.uint32)
        _core.used_renumber(numbers, self._plane, self._before, out)
        return out
