"""Large arrays out of memory that was used before.

Fresh memory is dear: the system hands it out page by page, and clears each page. In sums
of 64 MB that took longer than all our loops together. So large arrays give their memory back
here when nobody refers to them any more, and the next call finds it, still warm.

What lies here unused, and what is in use, is together at most half as much again as was
once in use at the same time; what has lain here longest goes first. `release` gives all
that is unused back to the system.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    Block = NDArray[np.uint8]

LARGE = 1 << 15  # smaller ones come from the heap, which keeps its pages
SLACK = 1.5  # times the peak
STEPS = 8  # sizes to a doubling: at most an eighth of a block is left unused


class BufferPool:
    """Blocks of memory by size, the one used last on top."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[int, Block]]] = {}  # (when, block)
        self._back: deque[tuple[int, Block | None]] = deque()  # (bytes, block), to settle
        self._puts = 0
        self._lock = threading.RLock()
        self.releases = 0
        self.used = self.peak = self.unused = 0  # bytes, as of the last `update_counts`

    def acquire(self, nbytes: int) -> Block:
        """A block of at least that many bytes."""
        size = _rounded(nbytes)
        with self._lock:
            self.update_counts()
            stack = self._free.get(size)
            if stack:
                _, block = stack.pop()
                self.unused -= size
            else:
                block = self._fresh(size)
            self.used += size
            self.peak = max(self.peak, self.used)
            self._make_room()
        return block

    def give_back(self, block: Block, releases: int) -> None:
        """Nobody uses this block any more, which was taken after so many releases.

        It takes no lock: a lease may end anywhere, even inside `acquire`, or when the thread
        that holds the lock is no more.
        """
        kept = block if releases == self.releases else None
        self._back.append((block.nbytes, kept))

    def update_counts(self) -> None:
        """Bring the books up to date with what was put back."""
        with self._lock:
            while self._back:
                nbytes, block = self._back.popleft()
                self.used -= nbytes
                if block is not None:
                    self.unused += nbytes
                    self._puts += 1
                    self._free.setdefault(nbytes, []).append((self._puts, block))

    def release(self) -> None:
        """Give all that is not in use back to the system, and the rest when it is not."""
        with self._lock:
            self.releases += 1
            self.update_counts()
            self._free.clear()
            self.unused = 0
            self.peak = self.used

    def _fresh(self, size: int) -> Block:
        try:
            return np.empty(size, np.uint8)
        except MemoryError:
            self.release()  # what lies here may be what is missing
            return np.empty(size, np.uint8)

    def _make_room(self) -> None:
        while self.unused and self.used + self.unused > SLACK * self.peak:
            oldest = min(filter(None, self._free.values()), key=_age)
            _, block = oldest.pop(0)
            self.unused -= block.nbytes


class _PooledBuffer:
    """What an array and all its views hold on to; its end is theirs."""

    __slots__ = ("__array_interface__", "_block", "_pool", "_releases")

    def __init__(self, pool: BufferPool, count: int, dtype: np.dtype[Any]) -> None:
        self._pool, self._releases = pool, pool.releases
        self._block = pool.acquire(count * dtype.itemsize)
        self.__array_interface__ = {
            "version": 3,
            "data": self._block.__array_interface__["data"],
            "shape": (count,),
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # there may have been no memory for it
            self._pool.give_back(self._block, self._releases)


DEFAULT_POOL = BufferPool()


def _after_fork() -> None:
    """Another thread may have been at it, and will never finish in this process."""
    DEFAULT_POOL._lock = threading.RLock()
    DEFAULT_POOL.release()


os.register_at_fork(after_in_child=_after_fork)


def empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.empty`, of one dimension."""
    kind = np.dtype(dtype)
    if count * kind.itemsize < LARGE:
        return np.empty(count, kind)
    return np.asarray(_PooledBuffer(DEFAULT_POOL, count, kind))


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


def _age(stack: list[tuple[int, Block]]) -> int:
    return stack[0][0]


def _rounded(nbytes: int) -> int:
    """The next size that blocks have."""
    step = 1 << max(0, nbytes.bit_length() - STEPS.bit_length())
    return -(-nbytes // step) * step
