"""Rows that were read before are loaded, as long as their files have not changed."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING

from ...communicator.collective_errors import gather, together
from ...errors import DataError
from ...files import cache_folder
from .row_file import load_rows, save_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...communicator.communicator import Communicator
    from .rows import Rows
    from .sources import Source


BESIDE, USER = "beside", "user"


def kept(
    found: tuple[Source, ...],
    settings: str,
    where: str,
    comm: Communicator | None,
    make: Callable[[], Rows],
) -> Rows:
    """The rows that `make` gives, from a file that an earlier call has written, or new.

    All ranks load if all can; otherwise they read the text, and write the file. If it
    cannot be written, rank 0 warns, and the rows are those that were read.

    Args:
        found: What the rows are made of.
        settings: How.
        where: beside: in the folder of the first file; user: in the user's cache.
        comm: The ranks that share the rows.
        make: Reads them.
    """
    path = together(comm, lambda: _path(found, settings, where))
    mark = together(comm, lambda: _mark(found, settings))
    if gather(comm, _usable(path, mark)).all():
        return load_rows(path, comm, mark)
    rows = make()
    try:
        save_rows(path, rows, comm, mark)
        return load_rows(path, comm, mark)  # divided as it will be next time
    except (OSError, DataError) as error:
        if comm is None or comm.rank == 0:
            warnings.warn(f"{path} could not be written: {error}", stacklevel=4)
        return rows


def _path(found: tuple[Source, ...], settings: str, where: str) -> Path:
    """One file for each set of files and settings; the dot hides it from sharded reading."""
    names = "\n".join(str(source.path.resolve()) for source in found)
    key = hashlib.sha256(f"{names}\n{settings}".encode("utf-8", "surrogateescape"))
    first = found[0].path
    if where == BESIDE:
        return first.with_name(f".{first.name}-{key.hexdigest()[:12]}.rows")
    cache_folder().mkdir(parents=True, exist_ok=True)
    return cache_folder() / f"{first.name}-{key.hexdigest()[:12]}.rows"


def _mark(found: tuple[Source, ...], settings: str) -> bytes:
    """Changes with the size or the time of a file."""
    stats = [source.path.stat() for source in found]
    lines = [f"{stat.st_size} {stat.st_mtime_ns}" for stat in stats]
    return hashlib.sha256("\n".join([settings, *lines]).encode()).digest()


def _usable(path: Path, mark: bytes) -> bool:
    try:
        load_rows(path, None, mark)
    except (OSError, DataError):
        return False
    return True
