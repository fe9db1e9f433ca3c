"""A cache of rows: later reads map a binary file until the source files change."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING

from ...communicator.collective_errors import allgather_numbers, run_collectively
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


def cached_rows(
    sources: tuple[Source, ...],
    settings: str,
    location: str,
    comm: Communicator | None,
    read: Callable[[], Rows],
) -> Rows:
    """Return the rows from the cache, or read them and write the cache. Collective.

    All ranks load if all can. If the cache cannot be written, rank 0 warns, and the rows that
    were read are returned.

    Args:
        sources: Files that the rows are read from.
        settings: Settings of the reader.
        location: beside: the folder of the first file; user: the user's cache folder.
        comm: Ranks that share the rows.
        read: Reads the rows.

    Raises:
        DataError: If a source is a pipe.
    """
    for source in sources:
        if source.copy is not None:
            raise DataError(f"{source.path}: a pipe cannot be cached; leave out the cache")
    path = run_collectively(comm, lambda: _path(sources, settings, location))
    fingerprint = run_collectively(comm, lambda: _fingerprint(sources, settings))
    if allgather_numbers(comm, _usable(path, fingerprint)).all():
        return load_rows(path, comm, fingerprint)
    rows = read()
    try:
        save_rows(path, rows, comm, fingerprint)
        return load_rows(path, comm, fingerprint)  # partitioned as from the cache
    except (OSError, DataError) as error:
        if comm is None or comm.rank == 0:
            warnings.warn(f"{path} could not be written: {error}", stacklevel=4)
        return rows


def _path(sources: tuple[Source, ...], settings: str, location: str) -> Path:
    """Return one path per set of files and settings.

    The leading dot hides the file from a reader of the folder.
    """
    names = "\n".join(str(source.path.resolve()) for source in sources)
    key = hashlib.sha256(f"{names}\n{settings}".encode("utf-8", "surrogateescape"))
    first = sources[0].path
    if location == BESIDE:
        return first.with_name(f".{first.name}-{key.hexdigest()[:12]}.rows")
    cache_folder().mkdir(parents=True, exist_ok=True)
    return cache_folder() / f"{first.name}-{key.hexdigest()[:12]}.rows"


def _fingerprint(sources: tuple[Source, ...], settings: str) -> bytes:
    """Return a digest that changes with the size or modification time of a file."""
    stats = [source.path.stat() for source in sources]
    lines = [f"{stat.st_size} {stat.st_mtime_ns}" for stat in stats]
    return hashlib.sha256("\n".join([settings, *lines]).encode()).digest()


def _usable(path: Path, fingerprint: bytes) -> bool:
    try:
        load_rows(path, None, fingerprint)
    except (OSError, DataError):
        return False
    return True
