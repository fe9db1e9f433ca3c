"""The user's cache folder, pipes, and files that are replaced atomically."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache_folder() -> Path:
    """Return the folder for cached files: in XDG_CACHE_HOME if that is absolute, or ~/.cache.

    Raises:
        FileNotFoundError: If the user has no home folder.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        parent = given if given.is_absolute() else Path("~/.cache").expanduser()
    except RuntimeError:
        raise FileNotFoundError("this user has no home folder") from None
    return parent / "sparcml"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file to an error of a read; the system names it for `open` only."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_pipe(path: Path) -> bool:
    """Return whether a path is a pipe or a terminal, which can be read once only."""
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def copy_pipe(path: Path, file: IO[bytes]) -> None:
    """Copy all of a pipe to a file."""
    with path.open("rb") as pipe, naming(path):
        while block := pipe.read(1 << 20):
            file.write(block)
    file.flush()


def unfinished_path(path: Path, token: str | None = None) -> Path:
    """Return a hidden path in the same folder, for writing before `path` is replaced."""
    return path.with_name(f".{path.name}.{token or os.urandom(4).hex()}")


def check_writable(path: Path) -> None:
    """Raise OSError if `replacing` could not create its file beside `path`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if _is_special(path):
        return
    probe = unfinished_path(path)
    try:
        with probe.open("xb"):
            pass
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _is_special(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a socket."""
    return path.exists() and is_pipe(path)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` once it is complete.

    Readers see the old or the new content. If the block raises, `path` is unchanged and nothing
    else is left behind. A device or a pipe, such as /dev/null, is written to and never replaced.
    """
    if _is_special(path):
        buffer = io.BytesIO()  # zip files need to seek
        yield buffer
        path.write_bytes(buffer.getvalue())
        return
    unfinished = unfinished_path(path)
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
