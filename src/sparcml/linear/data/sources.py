"""Text files, plain or compressed, and the part of their text that a rank reads."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...communicator.collective_errors import allgather_numbers, run_collectively
from ...errors import DataError, how_to_install
from ...files import copy_pipe, is_pipe, naming

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

    from ...communicator.communicator import Communicator

    PathLike = str | os.PathLike[str]

BLOCK = 1 << 20
ZSTD_BLOCK = 1 << 17
UNKNOWN_LENGTH = 2**62
PLAIN = "plain"
MAGIC = {  # first bytes of compressed files; no text has them
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
UNPACK = "unpack it first"
WRITE = "load it, and write it with write_svmlight(path, Rows.of(X, y)) of sparcml.linear"
OTHER_FORMATS = {  # first bytes of files that are not text
    b"PAR1": ("a Parquet file", WRITE),
    b"PK\x03\x04": ("a zip archive", UNPACK),
    b"\x93NUMPY": ("a NumPy array", WRITE),
    b"\x89HDF": ("an HDF5 file", WRITE),
    b"ARROW1": ("an Arrow file", WRITE),
    b"SPARROWS": ("a file of save_rows", "load it with load_rows"),
    b"\xff\xfe": ("UTF-16 text", "convert it to UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "convert it to UTF-8"),
}


@dataclass(frozen=True)
class Source:
    """A file of text.

    Attributes:
        path: The file.
        size: Its bytes on disk.
        compression: plain, gzip, bz2, xz or zstd.
        copy: A temporary copy of what a pipe contained.
    """

    path: Path
    size: int
    compression: str
    copy: Any = None

    @classmethod
    def of(cls, path: Path, *, shared: bool = False) -> Source:
        """Inspect a file; copy a pipe to a temporary file.

        Args:
            path: The file.
            shared: Whether several ranks read it.

        Raises:
            DataError: If the file has another format, or several ranks share a pipe.
        """
        with ExitStack() as stack:
            copy = None
            if is_pipe(path):
                if shared:
                    raise DataError(
                        f"{path}: a pipe can be read by one process only; write it to a file "
                        f"first"
                    )
                copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="sparcml-"))
                copy_pipe(path, copy)
            with Path(copy.name if copy else path).open("rb") as file, naming(path):
                start = file.read(8)
                size = os.fstat(file.fileno()).st_size
                _check_format(path, file, start)
            matches = [name for magic, name in MAGIC.items() if start.startswith(magic)]
            source = cls(path, size, matches[0] if matches else PLAIN, copy)
            weakref.finalize(source, stack.pop_all().close)  # the copy ends with it
        return source

    @property
    def location(self) -> Path:
        """The file to open: `path`, or the copy of a pipe."""
        return Path(self.copy.name) if self.copy else self.path

    @contextmanager
    def text(self, offset: int = 0) -> Iterator[io.BufferedIOBase]:
        """Open the text at an offset.

        Raises:
            DataError: If the file cannot be decompressed.
        """
        if self.compression == PLAIN:
            with self.location.open("rb") as file:
                file.seek(offset)
                with naming(self.path):
                    yield file
            return
        open_file, error_type = _decompressor(self.compression)
        try:
            with open_file(self.location, "rb") as file:
                while offset and (skipped := file.read(min(offset, BLOCK))):
                    offset -= len(skipped)  # compressed files cannot seek
                yield file
        except (EOFError, OSError, zlib.error, error_type) as error:
            raise DataError(
                f"{self.path}: the {self.compression} file is damaged: {error}"
            ) from error

    def length(self) -> int:
        """Return the bytes of text; a compressed file is read for it."""
        if self.compression == PLAIN:
            return self.size
        with self.text() as file:
            return sum(map(len, iter(lambda: file.read(BLOCK), b"")))


def _check_format(path: Path, file: IO[bytes], start: bytes) -> None:
    """Raise DataError for a file that is recognised but is not text."""
    for magic, (name, remedy) in OTHER_FORMATS.items():
        if start.startswith(magic):
            what = f"{name}; {remedy}"
            if remedy == UNPACK and _holds_arrays(file):
                what = f"an npz file of NumPy arrays; {WRITE}"
            raise DataError(f"{path}: the file must be LIBSVM text, got {what}")


def _holds_arrays(file: IO[bytes]) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith(".npy") for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


@dataclass(frozen=True)
class Piece:
    """The lines of a source that start between bytes `start` and `stop` of its text."""

    source: Source
    start: int
    stop: int


def _decompressor(compression: str) -> tuple[Any, type[Exception]]:
    """Return an open function, and what it raises for damaged files besides the usual."""
    if compression == "gzip":
        import gzip

        return gzip.open, gzip.BadGzipFile
    if compression == "bz2":
        import bz2

        return bz2.open, EOFError
    if compression == "xz":
        import lzma

        return lzma.open, lzma.LZMAError
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"reading zstd files needs zstandard; install it with: {how_to_install('zstd')}"
        ) from None
    return lambda path, _: io.BufferedReader(ZstdFile(path), BLOCK), zstandard.ZstdError


class ZstdFile(io.RawIOBase):
    """The contents of a zstd file of any number of frames.

    The library's own reader accepts a truncated file as a shorter one.

    Raises:
        EOFError: If the file ends within a frame.
    """

    def __init__(self, path: Path) -> None:
        import zstandard

        self._frames = zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._file = path.open("rb")
        self._encoded = b""
        self._decoded = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Read what is decoded, at least one byte; 0 at the end."""
        while not self._decoded:
            self._encoded = self._encoded or self._file.read(ZSTD_BLOCK)
            if not self._encoded:
                if self._frame is not None:
                    raise EOFError("the file ends within a frame")
                return 0
            self._frame = self._frame or self._frames.decompressobj()
            self._decoded = memoryview(self._frame.decompress(self._encoded))
            self._encoded = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        out = memoryview(buffer).cast("B")
        count = min(len(out), len(self._decoded))
        out[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def find_sources(
    paths: PathLike | Iterable[PathLike], comm: Communicator | None
) -> tuple[Source, ...]:
    """Inspect files, and those of folders by name; the same ones on all ranks. Collective.

    Raises:
        DataError: If there are none, or ranks see different files.
    """
    sources = run_collectively(
        comm,
        lambda: tuple(
            Source.of(path, shared=comm is not None and comm.size > 1)
            for path in _expand(paths)
        ),
    )
    names = "\n".join(f"{source.path.name} {source.size}" for source in sources)
    checksums = allgather_numbers(
        comm, zlib.crc32(names.encode("utf-8", "surrogateescape"))
    )[:, 0]
    if (checksums != checksums[0]).any():
        other = int((checksums != checksums[0]).argmax())
        raise DataError(
            f"all ranks must see the same files, such as {sources[0].path}; rank {other} sees "
            f"other files than rank 0"
        )
    return sources


def _expand(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        if not path.is_dir():
            files.append(path)
            continue
        # Writers of sharded data leave marks such as _SUCCESS and .crc files among them.
        inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        if not inside:
            raise DataError(f"{path}: no files in this folder")
        files += inside
    if not files:
        raise DataError("no files were given")
    return files


def split_text(sources: tuple[Source, ...], comm: Communicator | None) -> list[Piece]:
    """Return this rank's part of the text: equal bytes, in the order of ranks. Collective.

    With several ranks, compressed text is read twice, since its length is not known. Each
    rank measures some of the files.
    """
    if comm is None or comm.size == 1:
        return [
            Piece(s, 0, s.size if s.compression == PLAIN else UNKNOWN_LENGTH)
            for s in sources
        ]
    rank, ranks = comm.rank, comm.size
    own = run_collectively(
        comm,
        lambda: [s.length() if i % ranks == rank else 0 for i, s in enumerate(sources)],
    )
    lengths = [int(length) for length in allgather_numbers(comm, *own).sum(axis=0)]
    total = sum(lengths)
    low, high = rank * total // ranks, (rank + 1) * total // ranks
    pieces, before = [], 0
    for source, length in zip(sources, lengths, strict=True):
        start, stop = max(low - before, 0), min(high - before, length)
        if start < stop:
            pieces.append(Piece(source, start, stop))
        before += length
    return pieces
