"""Files of text, plain or compressed, and which part of their text a rank reads."""

from __future__ import annotations

import os
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...communicator.collective_errors import gather, together
from ...errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedIOBase

    from ...communicator.communicator import Communicator

    Place = str | os.PathLike[str]

BLOCK = 1 << 20
PLAIN = "plain"
MAGIC = {  # how files begin; no text begins so
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file of a read that fails; the system does so for opening only."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@dataclass(frozen=True)
class Source:
    """One file. `size` is in bytes, as it lies on the disk."""

    path: Path
    size: int
    coding: str

    @classmethod
    def of(cls, path: Path) -> Source:
        """Look at a file."""
        with path.open("rb") as file, _named(path):
            start = file.read(8)
            size = os.fstat(file.fileno()).st_size
        found = [coding for magic, coding in MAGIC.items() if start.startswith(magic)]
        return cls(path, size, found[0] if found else PLAIN)

    @contextmanager
    def text(self, offset: int = 0) -> Iterator[BufferedIOBase]:
        """The text from an offset on.

        Raises:
            DataError: If it cannot be decompressed.
        """
        if self.coding == PLAIN:
            with self.path.open("rb") as file:
                file.seek(offset)
                with _named(self.path):
                    yield file
            return
        opened, damage = _library(self.coding)
        try:
            with opened(self.path, "rb") as file:
                while offset and (skipped := file.read(min(offset, BLOCK))):
                    offset -= len(skipped)  # there is no other way there
                yield file
        except (EOFError, OSError, zlib.error, damage) as error:
            raise DataError(
                f"{self.path} is damaged, or is no {self.coding}: {error}"
            ) from error

    def length(self) -> int:
        """Bytes of text."""
        if self.coding == PLAIN:
            return self.size
        with self.text() as file:
            return sum(map(len, iter(lambda: file.read(BLOCK), b"")))


@dataclass(frozen=True)
class Piece:
    """The lines of a source that start from byte `start` to byte `stop` of its text."""

    source: Source
    start: int
    stop: int


def _library(coding: str) -> tuple[Any, type[Exception]]:
    """How files are opened, and what is raised if they are damaged, beside the usual."""
    if coding == "gzip":
        import gzip

        return gzip.open, gzip.BadGzipFile
    if coding == "bz2":
        import bz2

        return bz2.open, EOFError
    if coding == "xz":
        import lzma

        return lzma.open, lzma.LZMAError
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            "a file is compressed by zstd; to read it: pip install sparcml[zstd]"
        ) from None
    from .zstd import ZstdFile

    return lambda path, _: BufferedReader(ZstdFile(path), BLOCK), zstandard.ZstdError


def sources(
    places: Place | Iterable[Place], comm: Communicator | None
) -> tuple[Source, ...]:
    """The files at the places given, those of a directory by name; the same on all ranks.

    Raises:
        DataError: If there are none, or ranks find others.
    """
    found = together(comm, lambda: tuple(Source.of(path) for path in _paths(places)))
    names = "\n".join(f"{source.path.name} {source.size}" for source in found)
    marks = gather(comm, zlib.crc32(names.encode("utf-8", "surrogateescape")))[:, 0]
    if (marks != marks[0]).any():
        other = int((marks != marks[0]).argmax())
        raise DataError(
            f"rank {other} finds other files than rank 0 at {_shown(places)}: all ranks must "
            f"see the same ones"
        )
    return found


def _paths(places: Place | Iterable[Place]) -> list[Path]:
    given = [places] if isinstance(places, str | os.PathLike) else list(places)
    paths: list[Path] = []
    for place in map(Path, given):
        if not place.is_dir():
            paths.append(place)
            continue
        # Writers of sharded data leave marks such as _SUCCESS and .crc files among them.
        inside = sorted(p for p in place.iterdir() if p.is_file() and p.name[0] not in "._")
        if not inside:
            raise DataError(f"{place}: there are no files in this directory")
        paths += inside
    if not paths:
        raise DataError("no files were given")
    return paths


def _shown(places: Place | Iterable[Place]) -> str:
    if isinstance(places, str | os.PathLike):
        return os.fspath(places)
    return ", ".join(os.fspath(place) for place in places)


def pieces(found: tuple[Source, ...], comm: Communicator | None) -> list[Piece]:
    """This rank's part of the text: as many bytes as the others', in the order of ranks.

    With several ranks, compressed text is read twice: its length is not known before. Each
    rank measures some of the files.
    """
    if comm is None or comm.size == 1:
        return [Piece(source, 0, _unknown(source)) for source in found]
    rank, ranks = comm.rank, comm.size
    mine = together(
        comm, lambda: [s.length() if i % ranks == rank else 0 for i, s in enumerate(found)]
    )
    lengths = [int(length) for length in gather(comm, *mine).sum(axis=0)]
    total = sum(lengths)
    low, high = rank * total // ranks, (rank + 1) * total // ranks
    parts, before = [], 0
    for source, length in zip(found, lengths, strict=True):
        start, stop = max(low - before, 0), min(high - before, length)
        if start < stop:
            parts.append(Piece(source, start, stop))
        before += length
    return parts


def _unknown(source: Source) -> int:
    return source.size if source.coding == PLAIN else 2**62
