"""A pool of reused memory for large arrays.

New memory is expensive: the system maps it page by page and clears each page. In sums of 64 MB
this took longer than all loops of the library. Large arrays therefore return their memory to the
pool when nothing refers to them any more, and the next array reuses it.

Used and unused memory together are at most 1.5 times the largest amount that was in use at the same
time; the memory that was unused longest is freed first. `release` frees all unused memory.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 15  # bytes; smaller arrays come from the heap, which keeps its pages
LINE = 64  # bytes
SLACK = 1.5  # times the peak
STEPS = 8  # sizes per doubling: at most an eighth of a block is unused


class Block(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Memory that starts at a cache line, with its address: asking for it is expensive."""

    address: int


class BufferPool:
    """Blocks of memory by size; the last one used is reused first."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[int, Block]]] = {}  # (time, block)
        self._returned: deque[tuple[int, Block | None]] = (
            deque()
        )  # (bytes, block), not counted yet
        self._puts = 0
        self._lock = threading.RLock()
        self.releases = 0
        self.used = self.peak = self.unused = 0  # bytes, as of the last `update_counts`

    def acquire(self, nbytes: int) -> Block:
        """Return a block of at least `nbytes` bytes."""
        size = _rounded(nbytes)
        with self._lock:
            if self._returned:
                self.update_counts()
            stack = self._free.get(size)
            if stack:
                _, block = stack.pop()
                self.unused -= size
            else:
                block = self._allocate(size)
            self.used += size
            self.peak = max(self.peak, self.used)
            if self.used + self.unused > SLACK * self.peak:
                self._make_room()
        return block

    def give_back(self, block: Block, releases: int) -> None:
        """Return a block that was acquired after `releases` releases to the pool.

        It does not lock: an array may end anywhere, even within `acquire`, or after the thread
        that holds the lock has ended.
        """
        reusable = block if releases == self.releases else None
        self._returned.append((block.nbytes, reusable))

    def update_counts(self) -> None:
        """Update the counts with the blocks that were given back."""
        with self._lock:
            while self._returned:
                nbytes, block = self._returned.popleft()
                self.used -= nbytes
                if block is not None:
                    self.unused += nbytes
                    self._puts += 1
                    self._free.setdefault(nbytes, []).append((self._puts, block))

    def release(self) -> None:
        """Free all unused memory now, and memory in use as soon as it is unused."""
        with self._lock:
            self.releases += 1
            self.update_counts()
            self._free.clear()
            self.unused = 0
            self.peak = self.used

    def _allocate(self, size: int) -> Block:
        try:
            return _aligned(size)
        except MemoryError:
            self.release()  # unused memory may be what is missing
            return _aligned(size)

    def _make_room(self) -> None:
        while self.unused and self.used + self.unused > SLACK * self.peak:
            oldest = min(filter(None, self._free.values()), key=_age)
            _, block = oldest.pop(0)
            self.unused -= block.nbytes


class _PooledBuffer:
    """Owner of the memory of an array and its views; it ends with the last of them."""

    __slots__ = ("__array_interface__", "_block", "_pool", "_releases")

    def __init__(self, pool: BufferPool, count: int, dtype: np.dtype[Any]) -> None:
        self._pool, self._releases = pool, pool.releases
        self._block = pool.acquire(count * dtype.itemsize)
        self.__array_interface__ = {
            "version": 3,
            "data": (self._block.address, False),
            "shape": (count,),
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # allocation may have failed
            self._pool.give_back(self._block, self._releases)


DEFAULT_POOL = BufferPool()


def _after_fork() -> None:
    """Replace the lock, which a thread of the parent may hold."""
    DEFAULT_POOL._lock = threading.RLock()
    DEFAULT_POOL.release()


os.register_at_fork(after_in_child=_after_fork)


def empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized vector, like `numpy.empty`."""
    type_ = np.dtype(dtype)
    if count * type_.itemsize < LARGE:
        return np.empty(count, type_)
    return np.asarray(_PooledBuffer(DEFAULT_POOL, count, type_))


def full(count: int, fill: float, dtype: DTypeLike) -> NDArray[Any]:
    """Return a filled vector, like `numpy.full`."""
    array = empty(count, dtype)
    array.fill(fill)
    return array


def copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a vector."""
    new = empty(array.size, array.dtype)
    new[:] = array
    return new


def concatenate(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return vectors of one dtype joined, like `numpy.concatenate`."""
    joined = empty(sum(a.size for a in arrays), arrays[0].dtype)
    return np.concatenate(arrays, out=joined)


def _aligned(size: int) -> Block:
    """Return a block that starts at a cache line: kernels may then write past the caches."""
    memory = np.empty(size + LINE, np.uint8)
    address = memory.ctypes.data
    start = -address % LINE
    block = memory[start : start + size].view(Block)
    block.address = address + start
    return block


def _age(stack: list[tuple[int, Block]]) -> int:
    return stack[0][0]


@lru_cache(maxsize=1024)
def _rounded(nbytes: int) -> int:
    """Return the next size of a block."""
    step = 1 << max(0, nbytes.bit_length() - STEPS.bit_length())
    return -(-nbytes // step) * step
