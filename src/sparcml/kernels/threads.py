"""Threads of the kernels: long loops are divided among the cores of this process.

The default is the number of processors that this process may use, divided by the ranks that a
launcher started on this machine; SPARCML_THREADS overrides it. No result depends on it: threads
compute different rows, columns or indices, and each sum keeps its order.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "SPARCML_THREADS"

# Variables in which launchers pass the number of ranks on a machine.
LOCAL_RANKS = ("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")


def default_threads() -> int:
    """Return the number of threads without a setting of the program.

    Raises:
        ValueError: If SPARCML_THREADS is not a positive integer.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(
                f"set_threads: {VARIABLE} must be a positive integer, got {given!r}"
            )
        return int(given)
    sizes = [os.environ.get(name, "") for name in LOCAL_RANKS]
    ranks = max((int(size) for size in sizes if size.isdecimal()), default=1)
    return max(1, _core.usable_processors() // max(ranks, 1))


def threads() -> int:
    """Return the number of threads that a kernel may use, itself included."""
    return _core.threads()


def set_threads(count: int | None = None) -> None:
    """Let kernels use this many threads; None is the default."""
    _core.set_threads(default_threads() if count is None else count)


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Use this many threads in a block; None or -1 are the default."""
    before = threads()
    set_threads(None if count == -1 else count)
    try:
        yield
    finally:
        _core.set_threads(before)
