"""Large arrays out of memory that was used before.

Fresh memory is dear: the system hands it out page by page, and clears each page. On a
vector of 64 MB that took longer than summing it. So large arrays give their memory back
here when nobody refers to them any more, and the next call finds it, still warm.

What lies here unused, and what is in use, is together at most half as much again as was
once in use at the same time; what has lain here longest goes first. `release` gives all
that is unused back to the system.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 15  # smaller ones come from the heap, which keeps its pages
SLACK = 1.5  # times the peak
STEPS = 8  # sizes to a doubling: at most an eighth of a block is left unused


class Pool:
    """Blocks of memory by size, the one used last on top."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[int, NDArray[np.uint8]]]] = {}  # (when, block)
        self._puts = 0
        self._lock = threading.RLock()  # a lease may end while another one begins
        self.used = self.peak = self.unused = 0  # bytes

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """A block of at least that many bytes."""
        size = _rounded(nbytes)
        with self._lock:
            self.used += size
            self.peak = max(self.peak, self.used)
            stack = self._free.get(size)
            if stack:
                self.unused -= size
                return stack.pop()[1]
            self._make_room()
        return np.empty(size, np.uint8)

    def put(self, block: NDArray[np.uint8]) -> None:
        """Nobody uses this block any more."""
        with self._lock:
            self.used -= block.nbytes
            self.unused += block.nbytes
            self._puts += 1
            self._free.setdefault(block.nbytes, []).append((self._puts, block))

    def _make_room(self) -> None:
        while self.unused and self.used + self.unused > SLACK * self.peak:
            oldest = min((stack for stack in self._free.values() if stack), key=_age)
            self.unused -= oldest.pop(0)[1].nbytes

    def release(self) -> None:
        """Give everything that is not in use back to the system."""
        with self._lock:
            self._free.clear()
            self.unused = 0
            self.peak = self.used


class _Lease:
    """What an array and all its views hold on to; its end is theirs."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: Pool, count: int, dtype: np.dtype[Any]) -> None:
        self._pool = pool
        self._block = pool.take(count * dtype.itemsize)
        self.__array_interface__ = {
            "version": 3,
            "data": self._block.__array_interface__["data"],
            "shape": (count,),
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # there may have been no memory for it
            self._pool.put(self._block)


POOL = Pool()


def empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.empty`, of one dimension."""
    kind = np.dtype(dtype)
    if count * kind.itemsize < LARGE:
        return np.empty(count, kind)
    return np.asarray(_Lease(POOL, count, kind))


def full(count: int, fill: float, dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.full`, of one dimension."""
    array = empty(count, dtype)
    array.fill(fill)
    return array


def copy(array: NDArray[Any]) -> NDArray[Any]:
    """As `array.copy()`, of one dimension."""
    new = empty(array.size, array.dtype)
    new[:] = array
    return new


def concatenate(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """As `numpy.concatenate`, of arrays of one dtype and dimension."""
    whole = empty(sum(a.size for a in arrays), arrays[0].dtype)
    return np.concatenate(arrays, out=whole)


def _age(stack: list[tuple[int, NDArray[np.uint8]]]) -> int:
    return stack[0][0]


def _rounded(nbytes: int) -> int:
    """The next size that blocks have."""
    step = 1 << max(0, nbytes.bit_length() - STEPS.bit_length())
    return -(-nbytes // step) * step
